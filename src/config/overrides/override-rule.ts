// SPDX-License-Identifier: Apache-2.0
// One row of the tables of variables and flags: which config key it sets and how its text is converted. In
// a target, `<region>` and `<image>` stand for the single entry of that section, `*` for every pool.
import type { Parsed } from '../../model/parsed.ts';
import type { SourceSystem } from '../source-systems.ts';

export type TargetStep = string | number;

export interface ConversionInput {
  /** The text of the variable, trimmed and not blank. */
  readonly text: string;
  /** Name of the variable, for conversions that refer to it instead of copying a secret. */
  readonly name: string;
  /** Current value of the target. */
  readonly current: unknown;
}

export interface ConvertedValue {
  readonly value: unknown;
  /** Set when the value differs from the text of the variable. */
  readonly warning?: string;
}

export interface OverrideRule {
  readonly name: string;
  readonly target: readonly TargetStep[];
  readonly convert: (input: ConversionInput) => Parsed<ConvertedValue>;
  /** Sibling keys that this override replaces. */
  readonly replaces?: readonly string[];
  /** Keys of the region (`tls.caFile`) that cannot be combined with this value and are removed. */
  readonly conflictsWith?: (value: unknown) => readonly string[];
  /** Sibling keys that belong to the old value. They are kept with a warning when the value changes. */
  readonly staleSiblings?: readonly string[];
  /** Sets only a part of the value, so two such overrides do not conflict. */
  readonly setsPart?: boolean;
  /** Additional keys of a region or image that this override creates. */
  readonly createdWith?: Readonly<Record<string, unknown>>;
  /** The variable contains a secret; its text is never read here. */
  readonly isSecret?: boolean;
  /** For the reference page. */
  readonly description: string;
  /** The system whose variable this is; absent for flags. */
  readonly system?: 'pvescaler' | SourceSystem;
}
