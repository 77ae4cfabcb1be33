// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { DriverEvents, DriverOptions, FleetStatus, FleetView } from '../fleet/index.ts';
import type { Machine, MachineId } from '../model/machine.ts';
import { type PvescalerError, Unauthorized, Unreachable } from '../ports/errors.ts';
import { advanceUntilSettled } from '../ports/fakes/advance-until-settled.ts';
import { aMachineId, anIntent } from '../ports/fakes/sample-records.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { JournalQuery } from '../ports/journal.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { type FleetOperation, isRequestOpen, runUntilDone } from './run-until-done.ts';

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
  removedPools: [],
  drains: [],
  machines: [STUCK, READY],
  openIntents: 0,
  driver: 'other',
};
const FAILURE = {
  at: 1,
  sequence: 1,
  kind: 'failed',
  reason: 'HalfMadeVm',
  message: 'VM 1250 kept its lock',
};

function reportPass(
  events: DriverEvents,
  errors: Readonly<Record<string, PvescalerError>> = {},
  silent: Readonly<Record<string, string>> = {},
): void {
  events.onPassBegin?.();
  const seenAt = { regions: {}, cluster: undefined };
  const failed = Object.entries(errors).map(([region, { message }]) => [region, message]);
  const stale = { ...silent, ...Object.fromEntries(failed) };
  events.onPass?.({
    stale,
    errors,
    undecided: [],
    inProgress: 0,
    orphans: [],
    nextPassAt: 0,
    seenAt,
  });
  events.onPassEnd?.('success');
}

/** A fleet that another process drives for `otherForMs`, and then this one. */
function createFleetUnderTest(
  otherForMs: number,
  errorsAt: (ms: number) => Readonly<Record<string, PvescalerError>> = () => ({}),
  silentAt: (ms: number) => Readonly<Record<string, string>> = () => ({}),
) {
  const clock = new VirtualClock();
  const printed: string[] = [];
  const intents = { open: 0 };
  const runDriver = async (options: DriverOptions): Promise<void> => {
    const { events = {}, finish = options.signal } = options;
    const signal = AbortSignal.any([options.signal, finish]);
    const start = clock.monotonic();
    while (!signal.aborted) {
      if (clock.monotonic() - start < otherForMs) events.onWaiting?.('other/1');
      else {
        const ms = clock.monotonic() - start;
        reportPass(events, errorsAt(ms), silentAt(ms));
      }
      await clock.sleep(1_000, { signal }).catch(() => undefined);
    }
  };
  const open = {
    fleet: { runDriver, status: () => Promise.resolve({ ...STATUS, openIntents: intents.open }) },
    store: {
      journal: {
        // Earlier entries are returned only by a query for the machine.
        read: ({ machine }: JournalQuery) => Promise.resolve(machine === STUCK.id ? [FAILURE] : []),
      },
    },
  } as unknown as OpenFleet;
  const interrupt = new AbortController();
  const context = {
    clock,
    signal: interrupt.signal,
    err: (text: string) => void printed.push(text),
  };
  const host = { context, showStatus: () => undefined } as unknown as CommandHost;
  const run = (operation: Partial<FleetOperation>) =>
    advanceUntilSettled(
      clock,
      runUntilDone(host, open, {
        regions: [],
        submit: () => Promise.resolve(),
        isUnfinished: ({ phase }) => phase === 'deleting',
        isDone: (completePasses) => Promise.resolve(completePasses >= 3),
        ...operation,
      }),
    );
  return { clock, printed, run, interrupt, intents };
}

describe('runUntilDone with an operation that this process must drive', () => {
  const ifAnotherDrives = 'stop the other one';

  it('rejects with the hint when another process keeps driving', async () => {
    const { printed, run } = createFleetUnderTest(Infinity);
    await expect(run({ ifAnotherDrives })).rejects.toMatchObject({
      code: 'LEASE_HELD',
      message: 'other/1 drives the fleet',
      hint: ifAnotherDrives,
    });
    expect(printed).toContain('other/1 drives the fleet; watching\n');
  });

  it('takes over the lease of a dead process and counts its own passes', async () => {
    const { run } = createFleetUnderTest(15_000);
    await expect(run({ ifAnotherDrives })).resolves.toBeUndefined();
  });

  it('watches the other process without limit when the operation has no such hint', async () => {
    const { clock, run } = createFleetUnderTest(600_000);
    await run({});
    expect(clock.monotonic()).toBeGreaterThan(600_000);
  });
});

describe('runUntilDone with an operation that does not finish', () => {
  const never = { isDone: () => Promise.resolve(false) };

  it('prints at the start the last error of each unfinished machine', async () => {
    const { printed, run } = createFleetUnderTest(0);
    await run({});
    expect(printed).toContain('worker-1: deleting; VM 1250 kept its lock\n');
  });

  it('times out with the unfinished machines and their last errors', async () => {
    const { clock, run } = createFleetUnderTest(0);
    await expect(run({ ...never, timeoutMs: 60_000 })).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      message: 'timed out: worker-1 is deleting (VM 1250 kept its lock)',
      hint: expect.stringContaining('Run the command again, or start pvescaler serve'),
    });
    expect(clock.monotonic()).toBeLessThan(62_000);
  });

  it('names the process that continues when it is interrupted', async () => {
    const { run, interrupt } = createFleetUnderTest(Infinity);
    const isDone = () => {
      interrupt.abort();
      return Promise.resolve(false);
    };
    await expect(run({ isDone })).rejects.toMatchObject({
      code: 'CANCELLED',
      message: 'interrupted: worker-1 is deleting (VM 1250 kept its lock)',
      hint: 'The request is saved, and other/1 continues with it.',
    });
  });

  it.each([
    [1, 'interrupted: 1 request is saved and not carried out yet'],
    [2, 'interrupted: 2 requests are saved and not carried out yet'],
  ])(
    'names %d open requests when it is interrupted before machines exist',
    async (open, message) => {
      const { run, interrupt, intents } = createFleetUnderTest(0);
      const isDone = () => {
        intents.open = open;
        interrupt.abort();
        return Promise.resolve(false);
      };
      await expect(run({ isDone, isUnfinished: () => false })).rejects.toMatchObject({
        message,
        hint: expect.stringContaining('The request is saved'),
      });
    },
  );

  it('submits nothing before the regions were read', async () => {
    const { run, interrupt } = createFleetUnderTest(0);
    interrupt.abort();
    await expect(run(never)).rejects.toMatchObject({
      message: 'interrupted before anything was requested',
    });
  });

  it('says which region has not answered when nothing was submitted in time, and prints that once', async () => {
    const silent = (ms: number) => ({ lab: `it has not answered for ${ms / 1_000} s` });
    const { printed, run } = createFleetUnderTest(0, () => ({}), silent);
    await expect(run({ ...never, regions: ['lab'], timeoutMs: 5_500 })).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      message:
        'timed out before anything was requested: cannot read region lab: it has not answered for 5 s',
      hint: expect.stringContaining('pvescaler doctor'),
    });
    expect(printed.filter((line) => line.startsWith('cannot read'))).toEqual([
      'cannot read region lab: it has not answered for 0 s\n',
    ]);
  });
});

describe('runUntilDone with a region that cannot be read', () => {
  const refused = new Unauthorized('CREDENTIALS_REFUSED', 'invalid token value!');
  const unreachable = new Unreachable('PVE_UNREACHABLE', 'pve1 cannot be reached');
  const never = { regions: ['lab'], isDone: () => Promise.resolve(false) };

  it.each([refused, unreachable])('ends with its first error: %s', async (error) => {
    const { clock, run } = createFleetUnderTest(0, () => ({ lab: error }));
    await expect(run(never)).rejects.toBe(error);
    expect(clock.monotonic()).toBeLessThan(2_000);
  });

  it('does not end for a region that the command does not need', async () => {
    const { run } = createFleetUnderTest(0, () => ({ other: refused }));
    await expect(run({ ...never, timeoutMs: 5_000 })).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
    });
  });

  it('waits after the request was saved while the region may come back, and ends when it refuses the credentials', async () => {
    const { clock, run } = createFleetUnderTest(0, (ms) => {
      if (ms < 5_000) return {};
      return { lab: ms < 60_000 ? unreachable : refused };
    });
    await expect(run(never)).rejects.toBe(refused);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(60_000);
  });
});

it('a command waits for requests of its own machines, not for others', () => {
  const machines = new Set([aMachineId(1), aMachineId(2)]);
  const isOpen = (intent: Parameters<typeof anIntent>[0]) => {
    const view = { intents: { all: () => [anIntent(intent)] } } as unknown as FleetView;
    return isRequestOpen({ view }, machines);
  };
  expect(isOpen({ machines: [aMachineId(2), aMachineId(3)] })).toBe(true);
  expect(isOpen({ machines: [aMachineId(2)], state: 'done' })).toBe(false);
  expect(isOpen({ machines: [aMachineId(3)] })).toBe(false);
});
