// SPDX-License-Identifier: Apache-2.0
import { isRefusal, refusalBackoffMs } from '../../ports/backoff.ts';
import type { Clock } from '../../ports/clock.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { Hypervisor, RegionView } from '../../ports/hypervisor.ts';
import type { WriteAuthority } from './driver-lease.ts';

const MAX_VIEW_AGE_MS = 60_000;
/** A pass waits this long for the regions; one that has not answered by then is used when it has. */
const MAX_WAIT_MS = 2_000;
/** While a read is in progress, the view before it is used for this long. */
const MAX_AGE_WHILE_READING_MS = 10_000;

export interface RegionViews {
  /** Fresh views only: a region that is not in here decides nothing. */
  readonly views: ReadonlyMap<string, RegionView>;
  /** Why the other regions could not be read. */
  readonly stale: Readonly<Record<string, string>>;
  /** The errors of those whose read failed; a region that has not answered yet has none. */
  readonly errors: Readonly<Record<string, PvescalerError>>;
}

interface Regions {
  readonly hypervisors: ReadonlyMap<string, Hypervisor>;
  readonly clock: Clock;
}

/** The last view of one region, and the read in progress. */
export interface RegionReading {
  view?: RegionView;
  /** Why the last read failed; undefined when it succeeded. */
  error?: PvescalerError | undefined;
  reading?: Promise<void> | undefined;
  /** Consecutive reads that ended with refused credentials or an untrusted certificate. */
  refusals?: number;
  /** On the monotonic clock: not read before that. */
  retryAt?: number | undefined;
  /** Of the read in progress, on the monotonic clock. */
  startedAt: number;
}

/** Regions are read independently of each other: one that does not answer delays the others by a moment at most. */
export async function recentRegionViews(
  regions: Regions,
  { signal, viewAgeMs = 0 }: Pick<WriteAuthority, 'signal' | 'viewAgeMs'>,
  readings: Map<string, RegionReading>,
): Promise<RegionViews> {
  const { clock, hypervisors } = regions;
  const now = clock.now();
  const pending: Promise<void>[] = [];
  for (const [name, hypervisor] of hypervisors) {
    const reading = readings.get(name) ?? { startedAt: clock.monotonic() };
    readings.set(name, reading);
    const isDue = clock.monotonic() >= (reading.retryAt ?? Number.NEGATIVE_INFINITY);
    const isOld = !isRecent(reading, { since: now - viewAgeMs, now });
    if (reading.reading === undefined && isDue && isOld) {
      reading.startedAt = clock.monotonic();
      reading.reading = read(reading, clock, () => hypervisor.view({ signal }));
    }
    if (reading.reading !== undefined) pending.push(reading.reading);
  }
  await waitFor(pending, clock);
  return collect(hypervisors.keys(), readings, clock);
}

/** Reads all regions now and waits for every answer, or for `maxWaitMs`. */
export async function readRegionViews(
  regions: Regions,
  maxWaitMs = Number.POSITIVE_INFINITY,
): Promise<RegionViews> {
  const { clock, hypervisors } = regions;
  const readings = new Map<string, RegionReading>();
  const reads = Array.from(hypervisors, ([name, hypervisor]) => {
    const reading: RegionReading = { startedAt: clock.monotonic() };
    readings.set(name, reading);
    reading.reading = read(reading, clock, () => hypervisor.view());
    return reading.reading;
  });
  await (Number.isFinite(maxWaitMs) ? waitFor(reads, clock, maxWaitMs) : Promise.all(reads));
  return collect(hypervisors.keys(), readings, clock);
}

async function read(
  reading: RegionReading,
  clock: Clock,
  view: () => Promise<RegionView>,
): Promise<void> {
  try {
    reading.view = await view();
    setError(reading, clock, undefined);
  } catch (error) {
    if (!(error instanceof PvescalerError) || error.code === 'CANCELLED') throw error;
    setError(reading, clock, error);
  } finally {
    reading.reading = undefined;
  }
}

function setError(reading: RegionReading, clock: Clock, error: PvescalerError | undefined): void {
  reading.error = error;
  reading.refusals = isRefusal(error) ? (reading.refusals ?? 0) + 1 : 0;
  reading.retryAt =
    reading.refusals === 0 ? undefined : clock.monotonic() + refusalBackoffMs(reading.refusals);
}

/** Waits for all, but only for a moment. */
export async function waitFor(
  pending: readonly Promise<void>[],
  clock: Clock,
  maxWaitMs = MAX_WAIT_MS,
): Promise<void> {
  if (pending.length === 0) return;
  const over = new AbortController();
  const deadline = clock.sleep(maxWaitMs, { signal: over.signal }).catch(() => undefined);
  const all = Promise.all(pending);
  // After the deadline nothing waits for the others; their errors are kept in the reading.
  all.catch(() => undefined);
  try {
    await Promise.race([all, deadline]);
  } finally {
    over.abort();
  }
}

/** A view from the future has an unknown age: the wall clock was set back since. */
function isRecent(
  { view, error }: RegionReading,
  { since, now }: { readonly since: number; readonly now: number },
): boolean {
  return view !== undefined && error === undefined && view.takenAt > since && view.takenAt <= now;
}

function collect(
  names: Iterable<string>,
  readings: ReadonlyMap<string, RegionReading>,
  clock: Clock,
): RegionViews {
  const views = new Map<string, RegionView>();
  const stale: Record<string, string> = {};
  const errors: Record<string, PvescalerError> = {};
  for (const name of names) {
    const reading = readings.get(name);
    if (reading?.error !== undefined) errors[name] = reading.error;
    const problem = reading === undefined ? 'it was not read' : staleReason(reading, clock);
    if (problem !== undefined) stale[name] = problem;
    else if (reading?.view !== undefined) views.set(name, reading.view);
  }
  return { views, stale, errors };
}

function staleReason(reading: RegionReading, clock: Clock): string | undefined {
  const { view, error, reading: inProgress, startedAt } = reading;
  if (error !== undefined) return error.message;
  const ageMs = view === undefined ? Number.POSITIVE_INFINITY : clock.now() - view.takenAt;
  if (inProgress === undefined) return ageMs > MAX_VIEW_AGE_MS ? 'its view is too old' : undefined;
  if (ageMs >= 0 && ageMs <= MAX_AGE_WHILE_READING_MS) return undefined;
  const seconds = Math.round((clock.monotonic() - startedAt) / 1_000);
  return `it has not answered for ${seconds} s`;
}

/** Whether the host shares this storage with others. False if the host or the storage is unknown. */
export function isStorageShared({ hosts }: RegionView, host: string, storage: string): boolean {
  const storages = hosts.find(({ name }) => name === host)?.storages ?? [];
  return storages.some(({ name, shared }) => name === storage && shared);
}
