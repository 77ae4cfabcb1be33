// SPDX-License-Identifier: Apache-2.0
// The decision as data: where the machine goes, and why not on each other host.

/** Error codes, except HOSTS_BUSY: that is not an error, the machine waits until a creation ends. */
export type RefusalCode =
  | 'HOSTS_BUSY'
  | 'NO_HOST_FITS'
  | 'NO_STORAGE_SPACE'
  | 'TEMPLATE_NOT_FOUND'
  | 'VOLUME_NOT_FOUND'
  | 'STORAGE_NOT_FOUND'
  | 'HOST_NOT_FOUND';

/**
 * Reasons to refuse a host, ordered from nearly placed to impossible. The reason nearest to a placement
 * determines the code of the whole refusal, because that is what an operator has to change. For example, a
 * template missing on one host does not matter if another host has it and only lacks memory.
 */
const CODE_BY_REASON = {
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

export type RefusalReason = keyof typeof CODE_BY_REASON;

// Object.entries types its keys as strings only.
const REASON_CODES: readonly (readonly [string, RefusalCode])[] = Object.entries(CODE_BY_REASON);

/** All reasons to refuse a host, nearest to a placement first. */
export const REFUSAL_REASONS: readonly string[] = Object.keys(CODE_BY_REASON);

export type ReasonNumbers = Readonly<Record<string, number | string>>;

export interface HostReason<Reason extends string> {
  readonly host: string;
  readonly reason: Reason;
  /** For people, including the numbers behind the decision. */
  readonly message: string;
  readonly numbers: ReasonNumbers;
}

/** One host may be refused for several reasons at once. */
export type HostRefusal = HostReason<RefusalReason>;

export interface Placed {
  readonly placed: true;
  readonly host: string;
  readonly storage: string;
  /** The template to clone, if the source is a template. */
  readonly template?: { readonly vmId: number; readonly host: string };
  readonly message: string;
  readonly numbers: ReasonNumbers;
  /** Refused hosts, and hosts that fit but were not preferred. */
  readonly others: readonly HostReason<RefusalReason | 'AnotherPreferred'>[];
}

export interface NotPlaced {
  readonly placed: false;
  readonly code: RefusalCode;
  readonly message: string;
  readonly refusals: readonly HostRefusal[];
}

export type HostDecision = Placed | NotPlaced;

export function notPlaced(unsorted: readonly HostRefusal[]): NotPlaced {
  const refusals = unsorted.toSorted(compareHosts);
  const [first] = REASON_CODES.flatMap(([name, code]) =>
    refusals.filter(({ reason }) => reason === name).map(({ message }) => ({ code, message })),
  );
  return {
    placed: false,
    code: first?.code ?? 'HOST_NOT_FOUND',
    message: first?.message ?? 'the region has no host',
    refusals,
  };
}

/** Compares by code unit, so that the order does not depend on the locale. */
export function compareNames(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

export function compareHosts(
  left: { readonly host: string },
  right: { readonly host: string },
): number {
  return compareNames(left.host, right.host);
}
