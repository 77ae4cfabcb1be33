// SPDX-License-Identifier: Apache-2.0
import type { MachineInput } from './seed-input.ts';
import { yamlText } from './yaml-text.ts';

/** The machine's id is the instance: a disk that is copied to another machine starts anew there. */
export function metaDataOf({ id, name }: MachineInput): string {
  return yamlText({ 'instance-id': id, 'local-hostname': name });
}
