// SPDX-License-Identifier: Apache-2.0
// The instants at which a process may die, recorded from a run in which it did not.

export type Point =
  | { readonly kind: 'write'; readonly number: number }
  /** `number` counts calls of the same name. */
  | { readonly kind: 'unseen' | 'seen'; readonly call: string; readonly number: number };

export interface Recording {
  readonly writes: number;
  readonly calls: readonly string[];
}

export function pointsOf({ writes, calls }: Recording): readonly Point[] {
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

/**
 * Some of each sort, evenly, others for another seed: half of them around calls that change something, the rest after
 * writes and around calls that look. What one sort has too few of goes to the others.
 */
export function sampled(points: readonly Point[], most: number, seed: number): readonly Point[] {
  const sorts = [
    points.filter(isDecisive),
    points.filter(({ kind }) => kind === 'write'),
    points.filter((point) => point.kind !== 'write' && !isDecisive(point)),
  ];
  const shares = [Math.ceil(most / 2), Math.ceil(most / 4), Math.floor(most / 4)];
  let left = most;
  const taken = sorts.map((sort, at) => Math.min(sort.length, shares[at] ?? 0));
  for (const count of taken) left -= count;
  return sorts.flatMap((sort, at) => {
    const more = Math.min(sort.length - (taken[at] ?? 0), Math.max(0, left));
    left -= more;
    return spread(sort, (taken[at] ?? 0) + more, seed);
  });
}

/** Around a call that changes something on the site. */
export function isDecisive(point: Point): boolean {
  return point.kind !== 'write' && !/^GET |\/ping$/.test(point.call);
}

/** So many of them, evenly. */
export function spread<T>(points: readonly T[], most: number, seed: number): readonly T[] {
  if (points.length <= most) return points;
  const step = points.length / most;
  const offset = (seed % 997) / 997;
  return Array.from(
    { length: most },
    (_, at) => points[Math.floor((at + offset) * step) % points.length],
  ).filter((point) => point !== undefined);
}

export function nameOf(point: Point): string {
  return point.kind === 'write'
    ? `write:${point.number}`
    : `${point.kind}:${point.call}:${point.number}`;
}
