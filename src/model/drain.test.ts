// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { DRAIN_STATES, DRAIN_TRANSITIONS, type DrainState } from './drain.ts';

function reachable(from: DrainState): Set<DrainState> {
  const seen = new Set<DrainState>([from]);
  for (const state of seen) for (const next of DRAIN_TRANSITIONS[state]) seen.add(next);
  return seen;
}

describe('drain states', () => {
  it('start with the record, before the Node is changed', () => {
    expect(reachable('wanted')).toEqual(new Set(DRAIN_STATES));
  });

  it('end as done or undone', () => {
    const ends = DRAIN_STATES.filter((state) => DRAIN_TRANSITIONS[state].length === 0);
    expect(ends).toEqual(['done', 'undone']);
  });

  it('allow cancelling until done, and a cancelled drain can only be undone', () => {
    for (const state of ['wanted', 'tainted', 'evicting', 'waiting-for-volumes'] as const) {
      expect(reachable(state)).toContain('undone');
    }
    expect(reachable('done')).not.toContain('undone');
    expect([...reachable('undoing')]).toEqual(['undoing', 'undone']);
  });
});
