// SPDX-License-Identifier: Apache-2.0

/** What an entry is about, from the outside in. At least one is named. */
export interface JournalSubject {
  readonly pool?: string;
  readonly machine?: string;
  readonly node?: string;
  readonly host?: string;
  readonly region?: string;
}

/** `did` = done, `refused` = decided not to, `failed` = tried in vain, `saw` = noticed from outside. */
export type JournalKind = 'did' | 'refused' | 'failed' | 'saw';

export interface JournalEntry {
  /** Wall clock, milliseconds. */
  readonly at: number;
  readonly kind: JournalKind;
  readonly subject: JournalSubject;
  /** A stable word in CamelCase (`ScaledUp`, `HostFull`): becomes the reason of an Event. */
  readonly reason: string;
  /** One sentence for people, with the numbers that decided. Never a secret. */
  readonly message: string;
  /** The same numbers as data, for `--json` and the page. */
  readonly numbers?: Readonly<Record<string, number | string>>;
}
