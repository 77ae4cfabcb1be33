// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { DriveTerms, FleetStatus } from '../fleet/index.ts';
import { untilSettled } from '../ports/fakes/until-settled.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { CommandHost } from './context.ts';
import type { OpenFleet } from './open-fleet.ts';
import { type Errand, workUntilDone } from './work-until.ts';

const STATUS: FleetStatus = { pools: [], machines: [], openIntents: 0, driver: 'other' };

/** Where another process has the lease for so long, and then this one. */
function aPlace(otherForMs: number) {
  const clock = new VirtualClock();
  const said: string[] = [];
  const drive = async ({ signal, events }: DriveTerms): Promise<void> => {
    const start = clock.monotonic();
    while (!signal.aborted) {
      if (clock.monotonic() - start < otherForMs) events?.onWaiting?.('other/1');
      else {
        events?.onRoundBegin?.();
        const seenAt = { regions: {}, cluster: undefined };
        events?.onRound?.({ stale: {}, undecided: [], underWay: 0, nextAt: 0, seenAt });
        events?.onRoundEnd?.();
      }
      await clock.sleep(1_000, { signal }).catch(() => undefined);
    }
  };
  const open = {
    fleet: { drive, status: () => Promise.resolve(STATUS) },
    store: { journal: { read: () => Promise.resolve([]) } },
  } as unknown as OpenFleet;
  const context = {
    clock,
    signal: new AbortController().signal,
    err: (text: string) => void said.push(text),
  };
  const host = { context } as unknown as CommandHost;
  const run = (errand: Partial<Errand>) =>
    untilSettled(
      clock,
      workUntilDone(host, open, {
        regions: [],
        ask: () => Promise.resolve(),
        isDone: (rounds) => Promise.resolve(rounds >= 3),
        ...errand,
      }),
    );
  return { clock, said, run };
}

describe('an errand that has to drive', () => {
  const ifAnotherDrives = 'stop the other one';

  it('ends with what to do where another process goes on driving', async () => {
    const { said, run } = aPlace(Infinity);
    await expect(run({ ifAnotherDrives })).rejects.toMatchObject({
      code: 'LEASE_HELD',
      message: 'other/1 drives the fleet',
      hint: ifAnotherDrives,
    });
    expect(said).toEqual(['other/1 drives; watching\n']);
  });

  it('waits for the lease of a dead process, and counts its own rounds', async () => {
    const { run } = aPlace(15_000);
    await expect(run({ ifAnotherDrives })).resolves.toBeUndefined();
  });

  it('is for those that say so: others watch for as long as it takes', async () => {
    const { clock, run } = aPlace(600_000);
    await run({});
    expect(clock.monotonic()).toBeGreaterThan(600_000);
  });
});
