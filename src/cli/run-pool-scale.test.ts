// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { DriverOptions, FleetStatus } from '../fleet/index.ts';
import type { Intent } from '../model/intent.ts';
import type { Machine } from '../model/machine.ts';
import { advanceUntilSettled } from '../ports/fakes/advance-until-settled.ts';
import { aMachine, aMachineId, anIntent } from '../ports/fakes/sample-records.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { failedMachinesError, type ScaleOptions, scalePool } from './run-pool-scale.ts';

function aFailedMachine(code: string, message: string): Machine {
  return {
    id: aMachineId(1),
    pool: 'workers',
    phase: 'failed',
    phaseSince: 0,
    requestedAt: 0,
    size: { cpu: 1, memoryBytes: 1, diskBytes: 1 },
    attempts: 0,
    failure: { code, message, at: 0, phase: 'creating' },
  };
}

describe('the error of a command whose machines failed', () => {
  it.each([
    ['NO_STORAGE_SPACE', 'NoCapacity', 6],
    ['PERMISSION_MISSING', 'Unauthorized', 7],
    ['PROVISION_TIMED_OUT', 'TimedOut', 10],
    ['TASK_FAILED', 'TaskFailed', 12],
  ])('has code, class and exit code of the cause %s', (code, kind, exitCode) => {
    const error = failedMachinesError([aFailedMachine(code, 'the cause')], 3);
    expect(error).toMatchObject({ code, class: kind, externalCodes: { exitCode } });
    expect(error.message).toBe('1 of 3 machines failed: the cause');
    expect(error.hint).toContain(`pvescaler machine show ${aMachineId(1)}`);
  });

  it('is TASK_FAILED for a reason that is not an error code', () => {
    const error = failedMachinesError([aFailedMachine('HOSTS_BUSY', 'all hosts are busy')], 1);
    expect(error.code).toBe('TASK_FAILED');
  });
});

interface OtherRequests {
  readonly afterRequest?: (machines: Machine[]) => void;
  readonly openIntents?: readonly Intent[];
}

/** A fleet that another process drives. It carries out each request at once, and then calls `afterRequest`. */
function scaleWhile(
  size: number,
  machinesBefore: readonly Machine[],
  { afterRequest = () => undefined, openIntents = [] }: OtherRequests,
) {
  const clock = new VirtualClock();
  const machines = [...machinesBefore];
  const requests: number[] = [];
  const printed = { out: '', err: '' };
  const status = (): Partial<FleetStatus> => {
    const nodeGroups: never[] = [];
    const target = machines.length;
    return {
      machines: [...machines],
      pools: [{ name: 'workers', target, ready: target, nodeGroups }] as never,
      drains: [],
      openIntents: openIntents.length,
    };
  };
  const open = {
    config: { pools: [{ name: 'workers', regions: [], nodeGroups: [] }] },
    fleet: {
      view: { intents: { all: () => openIntents } },
      status: () => Promise.resolve(status()),
      scaleTo: (_pool: string, to: number) => {
        requests.push(to);
        machines.splice(to);
        afterRequest(machines);
        return Promise.resolve({ intent: `scale-${requests.length}`, machines: [] });
      },
      async runDriver({ events = {}, signal, finish = signal }: DriverOptions) {
        events.onWaiting?.('other/1');
        await clock.sleep(600_000, { signal: finish }).catch(() => undefined);
      },
    },
    store: { journal: { read: () => Promise.resolve([]) } },
  } as unknown as OpenFleet;
  const context = {
    clock,
    signal: new AbortController().signal,
    out: (text: string) => void (printed.out += text),
    err: (text: string) => void (printed.err += text),
  };
  const host = { context, showStatus: () => undefined } as unknown as CommandHost;
  const options = { to: String(size), reason: 'by a test', drain: true } as ScaleOptions;
  const done = advanceUntilSettled(
    clock,
    scalePool(host, open, { name: 'workers', options: { ...options, timeout: '1m' } }),
  );
  return { done, requests, printed };
}

describe('pool scale', () => {
  const three = [1, 2, 3].map((n) =>
    aMachine({ id: aMachineId(n), phase: 'ready', intent: 'before' }),
  );

  it('scales once when the autoscaler requests machines again', async () => {
    const { done, requests, printed } = scaleWhile(2, three, {
      afterRequest: (machines) => {
        const id = aMachineId(10 + machines.length);
        machines.push(aMachine({ id, phase: 'ready', intent: 'of the autoscaler' }));
      },
    });
    await done;
    expect(requests).toEqual([2]);
    expect(printed.out).toBe('pool workers has 3 machines\n');
    expect(printed.err).toContain('pool workers: 1 machine was requested meanwhile');
  });

  it('scales again when a VM is adopted meanwhile', async () => {
    let isFound = false;
    const { done, requests, printed } = scaleWhile(2, three, {
      afterRequest: (machines) => {
        if (!isFound) machines.push(aMachine({ id: aMachineId(20), phase: 'ready' }));
        isFound = true;
      },
    });
    await done;
    expect(requests).toEqual([2, 2]);
    expect(printed.out).toBe('pool workers has 2 machines\n');
  });

  it.each([
    ['another pool', 'gpu', 'pool workers has 2 machines\n'],
    ['the pool', 'workers', ''],
  ])('waits for open requests of %s: %s', async (_, pool, out) => {
    const { done, printed } = scaleWhile(2, three, { openIntents: [anIntent({ pool })] });
    await done.catch(() => undefined);
    expect(printed.out).toBe(out);
  });
});
