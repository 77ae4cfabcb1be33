// SPDX-License-Identifier: Apache-2.0

/** The objects that an entry is about. At least one is set. */
export interface JournalSubject {
  readonly pool?: string;
  readonly machine?: string;
  readonly node?: string;
  /** `namespace/name`. */
  readonly pod?: string;
  readonly host?: string;
  readonly region?: string;
}

/**
 * `did`: an action was taken. `refused`: an action was decided against. `failed`: an action failed. `saw`: an
 * external change was observed.
 */
export type JournalKind = 'did' | 'refused' | 'failed' | 'saw';

export interface JournalEntry {
  /** Wall clock, milliseconds. */
  readonly at: number;
  readonly kind: JournalKind;
  readonly subject: JournalSubject;
  /** A stable CamelCase word (`ScaledUp`, `HostFull`); it becomes the reason of an Event. */
  readonly reason: string;
  /** One sentence for people, including the numbers behind the decision. Never contains a secret. */
  readonly message: string;
  /** The same numbers as data, for `--json` and the dashboard. */
  readonly numbers?: Readonly<Record<string, number | string>>;
}
