// SPDX-License-Identifier: Apache-2.0
import type { LabelsOf, NameOf } from './metric-table.ts';

/**
 * Where measurements go. Never rejects, throws or waits: measuring must not disturb what is measured. Labels that
 * the table does not name do not compile.
 */
export interface Meters {
  add<Name extends NameOf<'counter'>>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  observe<Name extends NameOf<'histogram'>>(
    name: Name,
    labels: LabelsOf<Name>,
    seconds: number,
  ): void;
  /** All values of a gauge at once: what is not named is no longer shown. */
  set<Name extends NameOf<'gauge'>>(
    name: Name,
    values: readonly { readonly labels: LabelsOf<Name>; readonly value: number }[],
  ): void;
}
