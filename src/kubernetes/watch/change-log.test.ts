// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { ChangeLog } from './change-log.ts';

function keys(count: number, prefix = 'key'): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

describe('ChangeLog', () => {
  it('returns each key that changed after a revision once, by kind', () => {
    const log = new ChangeLog();
    log.add(1, 'node', ['/a']);
    log.add(2, 'pod', ['ns/p', 'ns/q']);
    log.add(3, 'pod', ['ns/p']);
    expect(log.since(0)).toEqual({ node: new Set(['/a']), pod: new Set(['ns/p', 'ns/q']) });
    expect(log.since(2)).toEqual({ node: new Set(), pod: new Set(['ns/p']) });
    expect(log.since(3)).toEqual({ node: new Set(), pod: new Set() });
  });

  it('does not know the changes of one list that is longer than the log', () => {
    const log = new ChangeLog();
    log.add(1, 'pod', keys(10_001));
    log.add(2, 'pod', ['ns/p']);
    expect(log.since(0)).toBeUndefined();
    expect(log.since(1)?.pod).toEqual(new Set(['ns/p']));
  });

  it('drops the oldest revisions, whole ones only', () => {
    const log = new ChangeLog();
    for (let revision = 1; revision <= 3; revision += 1)
      log.add(revision, 'pod', keys(7_000, `r${revision}`));
    expect(log.since(1)).toBeUndefined();
    expect(log.since(2)?.pod.size).toBe(7_000);
  });
});
