// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { DriverOptions, FleetStatus } from '../fleet/index.ts';
import type { Machine, MachineId } from '../model/machine.ts';

import { advanceUntilSettled } from '../ports/fakes/advance-until-settled.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { JournalQuery } from '../ports/journal.ts';
import type { CommandHost } from './context.ts';
import type { OpenFleet } from './open-fleet.ts';
import { type Errand, workUntilDone } from './work-until.ts';

const STUCK: Machine = {
  id: '00000000-0000-4000-8000-000000000001' as MachineId,
  pool: 'workers',
  phase: 'deleting',
  phaseSince: 0,
  requestedAt: 0,
  size: { cpu: 1, memoryBytes: 1, diskBytes: 1 },
  attempts: 0,
  placement: {
    region: 'lab',
    host: 'pve1',
    vmId: 1_250,
    name: 'worker-1',
    diskStorage: 'local-lvm',
    addresses: [],
  },
};
const READY: Machine = { ...STUCK, phase: 'ready', id: `${STUCK.id.slice(0, -1)}2` as MachineId };
const STATUS: FleetStatus = {
  pools: [],
  machines: [STUCK, READY],
  openIntents: 0,
  driver: 'other',
};
const TROUBLE = {
  at: 1,
  sequence: 1,
  kind: 'failed',
  reason: 'HalfMadeVm',
  message: 'VM 1250 kept its lock',
};

/** Where another process has the lease for so long, and then this one. */
function aPlace(otherForMs: number) {
  const clock = new VirtualClock();
  const said: string[] = [];
  const runDriver = async (options: DriverOptions): Promise<void> => {
    const { events = {}, finish = options.signal } = options;
    const signal = AbortSignal.any([options.signal, finish]);
    const start = clock.monotonic();
    while (!signal.aborted) {
      if (clock.monotonic() - start < otherForMs) events.onWaiting?.('other/1');
      else {
        events.onPassBegin?.();
        const seenAt = { regions: {}, cluster: undefined };
        events.onPass?.({ stale: {}, undecided: [], inProgress: 0, nextPassAt: 0, seenAt });
        events.onPassEnd?.();
      }
      await clock.sleep(1_000, { signal }).catch(() => undefined);
    }
  };
  const open = {
    fleet: { runDriver, status: () => Promise.resolve(STATUS) },
    store: {
      journal: {
        // What was told before the command began is told about its machine only.
        read: ({ machine }: JournalQuery) => Promise.resolve(machine === STUCK.id ? [TROUBLE] : []),
      },
    },
  } as unknown as OpenFleet;
  const interrupt = new AbortController();
  const context = {
    clock,
    signal: interrupt.signal,
    err: (text: string) => void said.push(text),
  };
  const host = { context } as unknown as CommandHost;
  const run = (errand: Partial<Errand>) =>
    advanceUntilSettled(
      clock,
      workUntilDone(host, open, {
        regions: [],
        ask: () => Promise.resolve(),
        isLeft: ({ phase }) => phase === 'deleting',
        isDone: (rounds) => Promise.resolve(rounds >= 3),
        ...errand,
      }),
    );
  return { clock, said, run, interrupt };
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
    expect(said).toContain('other/1 drives; watching\n');
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

describe('an errand that does not come to its end', () => {
  const never = { isDone: () => Promise.resolve(false) };

  it('says at the beginning what holds its machines up, though nobody tells it again', async () => {
    const { said, run } = aPlace(0);
    await run({});
    expect(said).toContain('worker-1: deleting; VM 1250 kept its lock\n');
  });

  it('ends in time, with what is left and why', async () => {
    const { clock, run } = aPlace(0);
    await expect(run({ ...never, timeoutMs: 60_000 })).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      message: 'not done in time: worker-1 is deleting (VM 1250 kept its lock)',
      hint: expect.stringContaining('Run the command again, or any other driver'),
    });
    expect(clock.monotonic()).toBeLessThan(62_000);
  });

  it('says who goes on with it when it is interrupted', async () => {
    const { run, interrupt } = aPlace(Infinity);
    const isDone = () => {
      interrupt.abort();
      return Promise.resolve(false);
    };
    await expect(run({ isDone })).rejects.toMatchObject({
      code: 'CANCELLED',
      message: 'interrupted: worker-1 is deleting (VM 1250 kept its lock)',
      hint: 'What was asked for is kept, and other/1 goes on with it.',
    });
  });

  it('has asked for nothing as long as nothing was seen', async () => {
    const { run, interrupt } = aPlace(0);
    interrupt.abort();
    await expect(run(never)).rejects.toMatchObject({
      message: 'interrupted; nothing was asked for',
    });
  });
});
