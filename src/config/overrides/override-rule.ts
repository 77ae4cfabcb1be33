// SPDX-License-Identifier: Apache-2.0
// One row of the tables of variables and flags: which key of the config it stands for and how its text is
// read. `<region>` and `<image>` stand for the only one there is, `*` for every pool.
import type { Parsed } from '../../model/parsed.ts';
import type { SourceSystem } from '../source-systems.ts';

export type TargetStep = string | number;

export interface ConversionInput {
  /** The text of the variable, trimmed and not blank. */
  readonly text: string;
  /** Its name, for conversions that refer to it instead of copying a secret. */
  readonly name: string;
  /** What the target holds so far. */
  readonly current: unknown;
}

export interface ConvertedValue {
  readonly value: unknown;
  /** Said when the text was taken differently from how it was written. */
  readonly warning?: string;
}

export interface OverrideRule {
  readonly name: string;
  readonly target: readonly TargetStep[];
  readonly convert: (input: ConversionInput) => Parsed<ConvertedValue>;
  /** Sibling keys that this one takes the place of. */
  readonly replaces?: readonly string[];
  /** Keys of the region (`tls.caFile`) that cannot stand beside this value: the file's are dropped. */
  readonly conflictsWith?: (value: unknown) => readonly string[];
  /** Sibling keys that were written for the value of the file: where it changes and they stay, that is said. */
  readonly staleSiblings?: readonly string[];
  /** Sets a part of the value and leaves the rest: two of them do not contradict each other. */
  readonly setsPart?: boolean;
  /** Further keys of the region or image, where this setting is what brings it into being. */
  readonly createdWith?: Readonly<Record<string, unknown>>;
  /** The variable holds a secret: its text is never read here. */
  readonly isSecret?: boolean;
  /** For the reference page. */
  readonly description: string;
  /** The system whose variable this is; absent for flags. */
  readonly system?: 'pvescaler' | SourceSystem;
}
