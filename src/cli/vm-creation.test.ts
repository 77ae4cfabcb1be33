// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Fleet } from '../fleet/index.ts';
import { aRegion, REGION, someSettings } from '../fleet/testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  REASON,
  type TestFleet,
  untilAtRest,
} from '../fleet/testing/test-fleet.ts';
import type { PvescalerError } from '../ports/errors.ts';
import { advanceUntilSettled } from '../ports/fakes/advance-until-settled.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { VmCreation } from './vm-creation.ts';

const GIB = 2 ** 30;
const COUNT = 4;
/** One VM after the other, so that each interruption meets some that do not exist. */
const settingsOf = (holder: string) =>
  someSettings([], {
    holder,
    regions: { [REGION]: aRegion({ limits: { createsPerHost: 1, createsPerStorage: 1 } }) },
  });

interface Interruption {
  /** Number of the call to Proxmox. */
  readonly atCall: number;
  /** The signal arrives before the call takes effect, or after. */
  readonly moment: 'before' | 'after';
  /** The response of this call never arrives. */
  readonly isResponseLost?: boolean;
}

/** Runs `vm create --count 4`, which is interrupted, in a process that drives or beside one. */
async function interrupted(testFleet: TestFleet, interruption: Interruption, driver?: Fleet) {
  const { clock, fleet, hypervisor, store } = testFleet;
  const { atCall, moment, isResponseLost = false } = interruption;
  const interrupt = new AbortController();
  let calls = 0;
  hypervisor.onCall = ({ method }) => {
    calls += 1;
    if (calls !== atCall) return;
    if (isResponseLost) hypervisor.dropResponse(method);
    if (moment === 'before') interrupt.abort();
    else queueMicrotask(() => interrupt.abort());
  };
  const context = { clock, signal: interrupt.signal, err: () => undefined, environment: {} };
  const open = {
    fleet,
    store,
    hypervisors: new Map([[REGION, hypervisor]]),
    config: {
      regions: { [REGION]: {} },
      ssh: { user: 'ubuntu', publicKeys: [], publicKeyPaths: [] },
      readiness: { timeoutMs: 300_000, sshIntervalMs: 10_000 },
    },
  } as unknown as OpenFleet;
  const host = { context, showStatus: () => undefined } as unknown as CommandHost;
  const creation = new VmCreation(host, open, {
    ...REASON,
    role: 'worker',
    count: COUNT,
    size: { cpu: 1, memoryBytes: 2 * GIB, diskBytes: 20 * GIB },
    host: { region: REGION, host: 'pve1' },
    vm: { from: { kind: 'image', image: 'noble' } },
  });
  const stop = new AbortController();
  const driving = driver?.runDriver({ signal: stop.signal });
  const error = await advanceUntilSettled(
    clock,
    creation.run().then(
      () => undefined,
      (reason: unknown) => reason as PvescalerError,
    ),
  );
  const existing = existingResources(hypervisor).vms;
  hypervisor.onCall = undefined;
  stop.abort();
  await driving;
  return { error, existing, isInterrupted: interrupt.signal.aborted };
}

function vmIdsIn(text: string): readonly number[] {
  return [...text.matchAll(/\(VM (\d+) on pve\d\)/g)].map(([, id]) => Number(id)).sort();
}

/** VMs that the message says may not exist. */
function uncertainIn(text: string): readonly number[] {
  return [...text.matchAll(/may not exist yet \(VM (\d+)/g)].map(([, id]) => Number(id));
}

/** Compares the message with Proxmox at that time, and after the next driver has done what is left. */
async function expectTruth(
  testFleet: TestFleet,
  { error, existing }: Awaited<ReturnType<typeof interrupted>>,
) {
  expect(error).toMatchObject({ code: 'CANCELLED' });
  const text = error?.message ?? '';
  const named = vmIdsIn(text);
  expect(named).toEqual(expect.arrayContaining([...existing]));
  const uncertain = uncertainIn(text);
  expect(existing).toEqual(
    expect.arrayContaining(named.filter((vmId) => !uncertain.includes(vmId))),
  );
  const cancelled = Number(/(\d+) VMs? did not exist yet/.exec(text)?.[1] ?? 0);
  expect([text, named.length + cancelled]).toEqual([text, COUNT]);
  await untilAtRest(testFleet.fleet, testFleet);
  expect(existingResources(testFleet.hypervisor).vms.toSorted()).toEqual(named);
  const machines = await machinesIn(testFleet.store);
  expect(machines.filter(({ phase }) => phase === 'ready')).toHaveLength(named.length);
}

/** From the first call after the request until the last VM is being configured. */
const CALLS = Array.from({ length: 30 }, (_, index) => 2 * index + 4);

async function expectTruthAtEachCall(
  interruption: Omit<Interruption, 'atCall'>,
  driverOf: (testFleet: TestFleet) => Fleet | undefined = () => undefined,
) {
  const created = new Set<number>();
  for (const atCall of CALLS) {
    const testFleet = aTestFleet(settingsOf('test'));
    const result = await interrupted(testFleet, { ...interruption, atCall }, driverOf(testFleet));
    if (result.error?.message.includes('before anything was requested')) continue;
    await expectTruth(testFleet, result);
    created.add(result.existing.length);
  }
  // Otherwise the interruptions came too early or too late to show anything.
  expect([...created].sort()).toEqual([0, 1, 2, 3, 4]);
}

describe('an interrupted vm create', () => {
  it('says what exists when the signal comes before a call takes effect', () =>
    expectTruthAtEachCall({ moment: 'before' }));

  it('says what exists when the signal comes during a call', () =>
    expectTruthAtEachCall({ moment: 'after' }));

  it('says what exists when the response of the call is lost as well', () =>
    expectTruthAtEachCall({ moment: 'after', isResponseLost: true }));

  it('says what exists while another process drives', () =>
    expectTruthAtEachCall({ moment: 'after' }, ({ clock, store, hypervisor }) =>
      aFleet({
        clock,
        store,
        hypervisor,
        settings: settingsOf('daemon'),
        seed: 2,
      }),
    ));
});

describe('an interrupted vm create after a failure', () => {
  it('says what failed, and not that it was cancelled', async () => {
    const testFleet = aTestFleet(settingsOf('test'));
    const interrupt = new AbortController();
    const failure = {
      code: 'NO_CAPACITY',
      message: 'no host has space',
      at: 0,
      phase: 'requested',
    };
    const machines = [
      { id: 'a', pool: 'role:worker', phase: 'failed', failure },
      { id: 'b', pool: 'role:worker', phase: 'gone' },
      { id: 'c', pool: 'role:worker', phase: 'requested' },
    ];
    const fleet = {
      runDriver: async ({ events }: Parameters<Fleet['runDriver']>[0]) =>
        events?.onPass?.({ stale: {}, errors: {}, undecided: [] } as never),
      requestVms: () => Promise.resolve({ machines: ['a', 'b', 'c'] }),
      cancelMachines: () => Promise.resolve({}),
      status: () => {
        interrupt.abort();
        return Promise.resolve({ machines, drains: [], openIntents: 0 });
      },
    };
    const open = {
      fleet,
      store: testFleet.store,
      config: { regions: { [REGION]: {} }, readiness: {} },
    } as unknown as OpenFleet;
    const { clock } = testFleet;
    const context = { clock, signal: interrupt.signal, err: () => undefined, environment: {} };
    const host = { context, showStatus: () => undefined } as unknown as CommandHost;
    const request = { ...REASON, vm: { from: { kind: 'netboot' } } } as never;
    const work = new VmCreation(host, open, request).run();
    const error = await advanceUntilSettled(
      clock,
      work.catch((reason: unknown) => reason as PvescalerError),
    );
    expect((error as PvescalerError).message).toBe(
      'interrupted: a failed (no host has space); 1 VM did not exist yet and is cancelled; 1 VM did not exist yet, and its cancellation is requested',
    );
  });
});
