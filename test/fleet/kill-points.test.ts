// SPDX-License-Identifier: Apache-2.0
// The crash matrix samples its kill points; every sample has points of each group.
import { describe, expect, it } from 'vitest';
import {
  formatKillPoint,
  isAroundWrite,
  type KillPoint,
  listKillPoints,
  sampleKillPoints,
} from '../fleet-matrix/kill-points.ts';

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
const RECORDED = listKillPoints({ writes: 30, calls: CREATE });
const SEEDS = Array.from({ length: 50 }, (_, at) => at * 7_919);

function groupOf(point: KillPoint): string {
  if (point.kind === 'write') return 'write';
  return `${isAroundWrite(point) ? 'write call' : 'read'} ${point.kind}`;
}

describe('a sample of kill points', () => {
  it.each([10, 18])('of size %i has points of every group for every seed', (limit) => {
    for (const seed of SEEDS) {
      const sample = sampleKillPoints(RECORDED, limit, seed);
      expect(sample).toHaveLength(limit);
      expect(new Set(sample.map(formatKillPoint)).size).toBe(limit);
      expect(new Set(sample.map(groupOf))).toEqual(
        new Set(['write', 'write call unseen', 'write call seen', 'read unseen', 'read seen']),
      );
    }
  });

  it('covers every point over many seeds', () => {
    const sample = SEEDS.flatMap((seed) =>
      sampleKillPoints(RECORDED, 18, seed).map(formatKillPoint),
    );
    expect(new Set(sample)).toEqual(new Set(RECORDED.map(formatKillPoint)));
  });

  it('is the same on a machine of another speed, which polls tasks more often', () => {
    const polled = CREATE.flatMap((call) =>
      call === 'GET /tasks' ? Array.from({ length: 7 }, () => call) : [call],
    );
    const slower = listKillPoints({ writes: 30, calls: polled });
    const polls = new Set(slower.map(formatKillPoint)).difference(
      new Set(RECORDED.map(formatKillPoint)),
    );
    expect(polls.size).toBeGreaterThan(100);
    for (const seed of SEEDS) {
      const names = (points: readonly KillPoint[]) =>
        sampleKillPoints(points, 18, seed)
          .map(formatKillPoint)
          .filter((name) => !name.includes('GET /tasks'));
      const [faster, other] = [names(RECORDED), names(slower)];
      expect(other.filter((name) => !faster.includes(name))).toEqual([]);
      expect(other.length).toBeGreaterThanOrEqual(faster.length - 2);
    }
  });

  it('fills up from other groups, and takes all points when there are few', () => {
    const few = listKillPoints({ writes: 30, calls: ['POST /qemu'] });
    expect(sampleKillPoints(few, 10, 3)).toHaveLength(10);
    expect(sampleKillPoints(few, 100, 3)).toHaveLength(few.length);
    expect(sampleKillPoints(few, Infinity, 3)).toHaveLength(few.length);
  });
});
