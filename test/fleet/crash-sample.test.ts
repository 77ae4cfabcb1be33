// SPDX-License-Identifier: Apache-2.0
// What the crash matrix takes of the instants it has recorded: in every run something of each sort.
import { describe, expect, it } from 'vitest';
import { isDecisive, nameOf, type Point, pointsOf, sampled } from '../fleet-matrix/points.ts';

const CREATE = [
  'GET /cluster/resources',
  ...[
    'download-url',
    'qemu',
    'resize',
    'upload',
    'config',
    'config',
    'config',
    'start',
    'delete',
  ].flatMap((call) => [`POST /${call}`, 'GET /tasks', 'GET /config']),
];
const RECORDED = pointsOf({ writes: 30, calls: CREATE });
const SEEDS = Array.from({ length: 50 }, (_, at) => at * 7_919);

function sortOf(point: Point): string {
  if (point.kind === 'write') return 'write';
  return `${isDecisive(point) ? 'change' : 'look'} ${point.kind}`;
}

describe('a sample of the instants', () => {
  it.each([10, 18])('of %i has every sort in it, whatever the seed', (most) => {
    for (const seed of SEEDS) {
      const taken = sampled(RECORDED, most, seed);
      expect(taken).toHaveLength(most);
      expect(new Set(taken.map(nameOf)).size).toBe(most);
      expect(new Set(taken.map(sortOf))).toEqual(
        new Set(['write', 'change unseen', 'change seen', 'look unseen', 'look seen']),
      );
    }
  });

  it('leaves nothing out over many seeds', () => {
    const taken = SEEDS.flatMap((seed) => sampled(RECORDED, 18, seed).map(nameOf));
    expect(new Set(taken)).toEqual(new Set(RECORDED.map(nameOf)));
  });

  it('fills up with other sorts where one has few, and takes all where there are few', () => {
    const few = pointsOf({ writes: 30, calls: ['POST /qemu'] });
    expect(sampled(few, 10, 3)).toHaveLength(10);
    expect(sampled(few, 100, 3)).toHaveLength(few.length);
    expect(sampled(few, Infinity, 3)).toHaveLength(few.length);
  });
});
