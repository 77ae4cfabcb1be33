// SPDX-License-Identifier: Apache-2.0
import type { MetricLabelsOf, MetricNameOf } from './metric-table.ts';

/**
 * Records measurements. Never throws or waits, so that measuring does not affect the measured code. Labels that the
 * table does not define do not compile.
 */
export interface Meters {
  add<Name extends MetricNameOf<'counter'>>(
    name: Name,
    labels: MetricLabelsOf<Name>,
    by?: number,
  ): void;
  observe<Name extends MetricNameOf<'histogram'>>(
    name: Name,
    labels: MetricLabelsOf<Name>,
    seconds: number,
  ): void;
  /** Replaces all values of a gauge: label sets that are not passed disappear. */
  set<Name extends MetricNameOf<'gauge'>>(
    name: Name,
    values: readonly { readonly labels: MetricLabelsOf<Name>; readonly value: number }[],
  ): void;
}
