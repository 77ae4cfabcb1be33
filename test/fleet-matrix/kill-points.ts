// SPDX-License-Identifier: Apache-2.0
// The points at which a process can be killed, recorded from a run without a kill.
import { createHash } from 'node:crypto';

export type KillPoint =
  | { readonly kind: 'write'; readonly number: number }
  /** `number` counts calls of the same name. */
  | { readonly kind: 'unseen' | 'seen'; readonly call: string; readonly number: number };

export interface Recording {
  readonly writes: number;
  readonly calls: readonly string[];
}

export function listKillPoints({ writes, calls }: Recording): readonly KillPoint[] {
  const counts = new Map<string, number>();
  const numbered = calls.map((call) => {
    const number = (counts.get(call) ?? 0) + 1;
    counts.set(call, number);
    return { call, number };
  });
  return [
    ...Array.from({ length: writes }, (_, at) => ({ kind: 'write', number: at + 1 }) as const),
    ...numbered.map((one) => ({ kind: 'unseen', ...one }) as const),
    ...numbered.map((one) => ({ kind: 'seen', ...one }) as const),
  ];
}

/** How often a state is polled depends on the speed of the machine: later calls of a name are in no sample. */
const MAX_READS = 10;

/**
 * A sample that depends on the seed: half around write calls, the rest after durable writes and around read calls. When
 * one group has too few points, the others get its share.
 */
export function sampleKillPoints(
  points: readonly KillPoint[],
  limit: number,
  seed: number,
): readonly KillPoint[] {
  if (points.length <= limit) return points;
  const around = points.filter(isAroundWrite);
  const reads = points.filter(
    (point) => point.kind !== 'write' && !isAroundWrite(point) && point.number <= MAX_READS,
  );
  const groups = [
    around.filter(({ kind }) => kind === 'unseen'),
    around.filter(({ kind }) => kind === 'seen'),
    points.filter(({ kind }) => kind === 'write'),
    reads.filter(({ kind }) => kind === 'unseen'),
    reads.filter(({ kind }) => kind === 'seen'),
  ];
  const [ofWriteCalls, ofReads] = [Math.ceil(limit / 2), Math.floor(limit / 4)];
  const shares = [
    Math.ceil(ofWriteCalls / 2),
    Math.floor(ofWriteCalls / 2),
    Math.ceil(limit / 4),
    Math.ceil(ofReads / 2),
    Math.floor(ofReads / 2),
  ];
  let left = limit;
  const taken = groups.map((group, at) => Math.min(group.length, shares[at] ?? 0, left));
  for (const count of taken) left -= count;
  return groups.flatMap((group, at) => {
    const more = Math.min(group.length - (taken[at] ?? 0), Math.max(0, left));
    left -= more;
    const count = (taken[at] ?? 0) + more;
    return sampleByName(group, count, (point) => `${seed} ${formatKillPoint(point)}`);
  });
}

/** At most `limit` items. Whether an item is one of them hardly depends on the others, which differ from run to run. */
export function sampleByName<T>(
  items: readonly T[],
  limit: number,
  nameOf: (item: T) => string,
): readonly T[] {
  if (items.length <= limit) return items;
  const ranked = items.map((item) => ({ item, rank: rankOf(nameOf(item)) }));
  return ranked
    .toSorted((left, right) => (left.rank < right.rank ? -1 : 1))
    .slice(0, limit)
    .map(({ item }) => item);
}

/** The same for the same name, otherwise random. */
function rankOf(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}

/** Whether the point is around a call that changes something on the site. */
export function isAroundWrite(point: KillPoint): boolean {
  return point.kind !== 'write' && !/^GET |\/ping$/.test(point.call);
}

/** At most `limit` points, evenly distributed. */
export function sampleEvenly<T>(points: readonly T[], limit: number, seed: number): readonly T[] {
  if (points.length <= limit) return points;
  const step = points.length / limit;
  const offset = (seed % 997) / 997;
  return Array.from(
    { length: limit },
    (_, at) => points[Math.floor((at + offset) * step) % points.length],
  ).filter((point) => point !== undefined);
}

export function formatKillPoint(point: KillPoint): string {
  return point.kind === 'write'
    ? `write:${point.number}`
    : `${point.kind}:${point.call}:${point.number}`;
}
