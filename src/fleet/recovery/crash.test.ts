// SPDX-License-Identifier: Apache-2.0
// Crash points on fakes, taken from a run without a crash: after each durable write, and at each mutating call to
// Proxmox, once before the response is received and once before it is recorded. The next process must end with exactly
// the requested machines, with the database and without it.
import { describe, expect, it } from 'vitest';
import { MemoryStore, SimulatedCrash } from '../../ports/fakes/memory-store.ts';
import type { SourceSettings } from '../context/settings.ts';
import { CrashingProcess, type CrashPoint } from '../testing/crashing-process.ts';
import {
  aPool,
  IMAGE_SOURCE,
  STATIC_NETWORK,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import {
  addressesInUse,
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  REASON,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const SOURCES: readonly (readonly [string, SourceSettings])[] = [
  ['image', IMAGE_SOURCE],
  ['full clone', templateSource('full')],
  ['linked clone', templateSource('linked')],
  ['netboot', { kind: 'netboot' }],
];

interface Scenario {
  readonly name: string;
  readonly before: number;
  readonly expected: number;
}

const SCENARIOS: readonly Scenario[] = [
  { name: 'create', before: 0, expected: 2 },
  { name: 'delete', before: 2, expected: 1 },
];

function settingsOf(source: SourceSettings) {
  const isNetboot = source.kind === 'netboot';
  return someSettings([
    aPool({ source, network: STATIC_NETWORK, ...(isNetboot && { seed: undefined }) }),
  ]);
}

async function prepare(source: SourceSettings, { before, expected }: Scenario): Promise<TestFleet> {
  const testFleet = aTestFleet(settingsOf(source));
  if (before > 0) {
    await testFleet.fleet.scaleTo('workers', before, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
  }
  await testFleet.fleet.scaleTo('workers', expected, REASON);
  return testFleet;
}

/** Runs a process until it crashes or everything is at rest. */
async function runUntilCrash(
  testFleet: TestFleet,
  source: SourceSettings,
  crashPoint: CrashPoint,
): Promise<CrashingProcess> {
  const process = new CrashingProcess(testFleet.store, testFleet.hypervisor, crashPoint);
  const settings = settingsOf(source);
  const fleet = aFleet({ ...testFleet, ...portsOf(process), settings, seed: 2 });
  await untilAtRest(fleet, { store: process.store, clock: testFleet.clock }).catch(
    (error: unknown) => {
      if (!(error instanceof SimulatedCrash)) throw error;
    },
  );
  return process;
}

function portsOf({ store, hypervisor }: CrashingProcess) {
  return { store, hypervisor };
}

async function expectExactly(testFleet: TestFleet, expected: number, note: string): Promise<void> {
  const left = existingResources(testFleet.hypervisor);
  const alive = (await machinesIn(testFleet.store)).filter(({ phase }) => phase === 'ready');
  expect(left.vms, note).toHaveLength(expected);
  expect(left.machines.toSorted(), note).toEqual(alive.map(({ id }) => id).sort());
  expect(left.isos, note).toEqual([]);
  expect(await addressesInUse(testFleet.store), note).toHaveLength(expected);
}

async function expectRecovery(
  testFleet: TestFleet,
  source: SourceSettings,
  expected: number,
): Promise<void> {
  const fleet = aFleet({ ...testFleet, settings: settingsOf(source), seed: 3 });
  await untilAtRest(fleet, testFleet);
  await expectExactly(testFleet, expected, 'with the database');
}

async function expectRecoveryWithoutDatabase(
  testFleet: TestFleet,
  source: SourceSettings,
  expected: number,
): Promise<void> {
  const fresh = { ...testFleet, store: new MemoryStore({ clock: testFleet.clock }) };
  const fleet = aFleet({ ...fresh, settings: settingsOf(source), seed: 4 });
  await untilAtRest(fleet, fresh);
  await fleet.scaleTo('workers', expected, REASON);
  await untilAtRest(fleet, fresh);
  await expectExactly(fresh, expected, 'without the database');
}

describe.each(SOURCES)('crash recovery, source %s', (_name, source) => {
  describe.each(SCENARIOS)('$name machines', (scenario) => {
    it('recovers from a crash after every durable write and at every mutating call', async () => {
      const undisturbed = await runUntilCrash(await prepare(source, scenario), source, {
        kind: 'never',
      });
      expect(undisturbed.writes).toBeGreaterThan(5);
      const crashPoints: CrashPoint[] = [
        ...Array.from(
          { length: undisturbed.writes },
          (_, at) => ({ kind: 'write', number: at + 1 }) as const,
        ),
        ...undisturbed.calls.flatMap((_, at) => [
          { kind: 'unseen', number: at + 1 } as const,
          { kind: 'seen', number: at + 1 } as const,
        ]),
      ];
      for (const crashPoint of crashPoints) {
        for (const expectation of [expectRecovery, expectRecoveryWithoutDatabase]) {
          const testFleet = await prepare(source, scenario);
          await runUntilCrash(testFleet, source, crashPoint);
          await expectation(testFleet, source, scenario.expected).catch((cause: unknown) => {
            throw new Error(`after ${JSON.stringify(crashPoint)}, ${expectation.name}`, { cause });
          });
        }
      }
    });
  });
});

describe.each(SOURCES)('a lost response, source %s', (_name, source) => {
  it.each(SCENARIOS)(
    '$name: recovers when the response to any mutating call is lost',
    async (scenario) => {
      const undisturbed = await runUntilCrash(await prepare(source, scenario), source, {
        kind: 'never',
      });
      for (const method of new Set(undisturbed.calls)) {
        const testFleet = await prepare(source, scenario);
        testFleet.hypervisor.dropResponse(
          method as Parameters<typeof testFleet.hypervisor.dropResponse>[0],
        );
        await runUntilCrash(testFleet, source, { kind: 'never' });
        await expectExactly(testFleet, scenario.expected, method);
      }
    },
  );
});
