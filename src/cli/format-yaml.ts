// SPDX-License-Identifier: Apache-2.0
import { stringify } from 'yaml';

/** No anchors and no folded lines, so that `grep` finds every value. */
export function formatYaml(value: unknown): string {
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 });
}
