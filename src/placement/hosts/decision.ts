// SPDX-License-Identifier: Apache-2.0
// The answer, as data: where the machine goes, and for every other host why not.

/** Codes of the product's errors, but for HOSTS_BUSY: that is no error, the machine waits for its turn. */
export type RefusalCode =
  | 'HOSTS_BUSY'
  | 'NO_HOST_FITS'
  | 'NO_STORAGE_SPACE'
  | 'TEMPLATE_NOT_FOUND'
  | 'VOLUME_NOT_FOUND'
  | 'STORAGE_NOT_FOUND'
  | 'HOST_NOT_FOUND';

/**
 * Why a host is refused, the nearest to a placement first: the whole request is refused for the nearest, since
 * that is what somebody would have to change. A template missing on one host does not matter where another
 * has it and is only full.
 */
const CODES = {
  HostBusy: 'HOSTS_BUSY',
  NotEnoughMemory: 'NO_HOST_FITS',
  NotEnoughCpu: 'NO_HOST_FITS',
  NotEnoughDisk: 'NO_STORAGE_SPACE',
  TooFewCpus: 'NO_HOST_FITS',
  TemplateMissing: 'TEMPLATE_NOT_FOUND',
  ImageMissing: 'VOLUME_NOT_FOUND',
  StorageRefusesContent: 'STORAGE_NOT_FOUND',
  StorageInactive: 'STORAGE_NOT_FOUND',
  StorageMissing: 'STORAGE_NOT_FOUND',
  HostOffline: 'NO_HOST_FITS',
  HostDenied: 'HOST_NOT_FOUND',
  HostNotAllowed: 'HOST_NOT_FOUND',
  HostUnknown: 'HOST_NOT_FOUND',
} as const satisfies Record<string, RefusalCode>;

export type RefusalReason = keyof typeof CODES;

// Object.entries knows its keys only as strings.
const REASON_CODES: readonly (readonly [string, RefusalCode])[] = Object.entries(CODES);

/** Every reason for which a host can be refused, the nearest to a placement first. */
export const REFUSAL_REASONS: readonly string[] = Object.keys(CODES);

export type Numbers = Readonly<Record<string, number | string>>;

export interface HostReason<Reason extends string> {
  readonly host: string;
  readonly reason: Reason;
  /** For people, with the numbers that decided. */
  readonly sentence: string;
  readonly numbers: Numbers;
}

/** One host may be refused for several reasons at once. */
export type Refusal = HostReason<RefusalReason>;

export interface Placed {
  readonly placed: true;
  readonly host: string;
  readonly storage: string;
  /** What to clone, where the source is a template. */
  readonly template?: { readonly vmId: number; readonly host: string };
  readonly sentence: string;
  readonly numbers: Numbers;
  /** Hosts refused, and hosts that would have done. */
  readonly others: readonly HostReason<RefusalReason | 'AnotherPreferred'>[];
}

export interface NotPlaced {
  readonly placed: false;
  readonly code: RefusalCode;
  readonly sentence: string;
  readonly refusals: readonly Refusal[];
}

export type Decision = Placed | NotPlaced;

export function notPlaced(unsorted: readonly Refusal[]): NotPlaced {
  const refusals = unsorted.toSorted(byHost);
  const [first] = REASON_CODES.flatMap(([name, code]) =>
    refusals.filter(({ reason }) => reason === name).map(({ sentence }) => ({ code, sentence })),
  );
  return {
    placed: false,
    code: first?.code ?? 'HOST_NOT_FOUND',
    sentence: first?.sentence ?? 'the region has no host',
    refusals,
  };
}

/** By code units, so that it does not depend on where the program runs. */
export function byName(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

export function byHost(left: { readonly host: string }, right: { readonly host: string }): number {
  return byName(left.host, right.host);
}
