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

/** What changes something is never left out; of the rest an even spread, at another offset for another seed. */
export function sampled(points: readonly Point[], most: number, seed: number): readonly Point[] {
  if (points.length <= most) return points;
  const decisive = points.filter(isDecisive);
  const rest = points.filter((point) => !isDecisive(point));
  return [
    ...spread(decisive, most, seed),
    ...spread(rest, Math.max(0, most - decisive.length), seed),
  ];
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
