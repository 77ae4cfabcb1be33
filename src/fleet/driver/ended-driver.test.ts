// SPDX-License-Identifier: Apache-2.0
// A process that is killed, and its successor on the same machine with the same store.
import { expect, it, onTestFinished } from 'vitest';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import { type LockFile, MemoryDriverLock } from '../../ports/fakes/memory-driver-lock.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { DriverRegistry } from '../context/driver-lease.ts';
import { createFleet } from '../fleet.ts';
import { REGION, someSettings } from '../testing/settings.ts';
import { aTestFleet } from '../testing/test-fleet.ts';
import { MAX_REQUEST_MS } from './leader-election.ts';

const SECOND_MS = 1_000;

function aMachine(options: { readonly hasCluster: boolean; readonly hasLock?: boolean }) {
  const { clock, store, hypervisor } = aTestFleet();
  const file: LockFile = {};
  const state = new MemoryCluster({ clock, random: new SeededRandom(6) }).state;
  const startProcess = (holder: string, seed: number) => {
    const lock = new MemoryDriverLock(file, clock);
    const driverRegistry = new DriverRegistry(clock, options.hasLock === false ? undefined : lock);
    // A killed process writes nothing more, and its lock is free.
    const writes = store.reopen();
    const cluster = new MemoryCluster({ clock, random: new SeededRandom(seed), state });
    const fleet = createFleet({
      clock,
      store: writes,
      hypervisors: new Map([[REGION, hypervisor]]),
      random: new SeededRandom(seed),
      settings: someSettings(undefined, { holder }),
      cluster: options.hasCluster ? cluster : undefined,
      driverRegistry,
    });
    const stop = new AbortController();
    let isLeading = false;
    const events = {
      onLeading: (leading: boolean) => {
        isLeading = leading;
      },
    };
    const driving = fleet.runDriver({ signal: stop.signal, events }).catch(() => undefined);
    onTestFinished(async () => {
      stop.abort();
      await advanceUntilSettled(clock, driving);
    });
    const kill = async () => {
      await writes.close();
      await cluster.close();
      lock.unlock();
    };
    return { driverRegistry, isLeading: () => isLeading, kill };
  };
  /** Seconds until the process leads. */
  const secondsUntilLeading = async ({ isLeading }: ReturnType<typeof startProcess>) => {
    const since = clock.now();
    while (!isLeading()) await clock.advance(SECOND_MS);
    return (clock.now() - since) / SECOND_MS;
  };
  return { clock, file, startProcess, secondsUntilLeading };
}

async function aKilledDriver(options: Parameters<typeof aMachine>[0]) {
  const machine = aMachine(options);
  const first = machine.startProcess('a', 1);
  await machine.secondsUntilLeading(first);
  for (let second = 0; second < 7; second += 1) await machine.clock.advance(SECOND_MS);
  return { ...machine, first };
}

it.each([false, true])(
  'the successor of a killed process drives within seconds (with a Lease in Kubernetes: %s)',
  async (hasCluster) => {
    const { first, startProcess, secondsUntilLeading } = await aKilledDriver({ hasCluster });
    await first.kill();
    expect(await secondsUntilLeading(startProcess('b', 2))).toBeLessThan(6);
  },
);

it('without the lock the successor waits until both leases have expired and requests are settled', async () => {
  const machine = await aKilledDriver({ hasCluster: true, hasLock: false });
  await machine.first.kill();
  const seconds = await machine.secondsUntilLeading(machine.startProcess('b', 2));
  expect(seconds).toBeGreaterThan((50_000 + MAX_REQUEST_MS) / SECOND_MS);
});

it('the successor waits until no request of the killed process can take effect any more', async () => {
  const { first, clock, startProcess, secondsUntilLeading } = await aKilledDriver({
    hasCluster: true,
  });
  first.driverRegistry.beginRequest();
  await clock.advance(5 * SECOND_MS);
  await first.kill();
  const seconds = await secondsUntilLeading(startProcess('b', 2));
  expect(seconds).toBeGreaterThanOrEqual(MAX_REQUEST_MS / SECOND_MS - 5);
  expect(seconds).toBeLessThan(MAX_REQUEST_MS / SECOND_MS);
});

it('a process that is only suspended keeps its lock, and its successor waits', async () => {
  const { startProcess, clock } = await aKilledDriver({ hasCluster: true });
  const second = startProcess('b', 2);
  for (let at = 0; at < 60; at += 1) await clock.advance(SECOND_MS);
  expect(second.isLeading()).toBe(false);
});

it('a driver that got its lease without the lock takes the lock later', async () => {
  const { startProcess, secondsUntilLeading, clock, file } = aMachine({ hasCluster: false });
  const other = new MemoryDriverLock(file, clock);
  other.tryLock();
  const first = startProcess('a', 1);
  await secondsUntilLeading(first);
  other.unlock();
  for (let at = 0; at < 7; at += 1) await clock.advance(SECOND_MS);
  await first.kill();
  expect(await secondsUntilLeading(startProcess('b', 2))).toBeLessThan(4);
});
