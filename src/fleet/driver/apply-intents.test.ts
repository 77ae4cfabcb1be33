// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Intent } from '../../model/intent.ts';
import type { Phase } from '../../model/machine.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { aMachine, aMachineId, anIntent } from '../../ports/fakes/sample-records.ts';
import { aPool, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  addressesInUse,
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  onePass,
  phasesIn,
  REASON,
  reachPhase,
  runPasses,
  type TestFleet,
} from '../testing/test-fleet.ts';

const ID = aMachineId(5);

function aDeletion(overrides: Partial<Intent> = {}): Intent {
  const { size: _size, ...intent } = anIntent({ id: 'deletion', machines: [ID] });
  return { ...intent, kind: 'delete', ...overrides } as Intent;
}

async function apply(testFleet: TestFleet, ...intents: readonly Intent[]) {
  for (const intent of intents) await testFleet.store.intents.create(intent.id, intent);
  await onePass(testFleet.fleet, testFleet);
}

describe('applyIntents: the order', () => {
  it.each([
    ['the deletion has the smaller id', 'a', 'b'],
    ['the creation has the smaller id', 'b', 'a'],
  ])('a creation and a deletion of one time leave no machine: %s', async (_what, first, second) => {
    const testFleet = aTestFleet();
    await apply(testFleet, aDeletion({ id: first }), anIntent({ id: second, machines: [ID] }));
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
  });

  it('a deletion before the creation of the same machine has no effect', async () => {
    const testFleet = aTestFleet();
    const creation = anIntent({ id: 'creation', machines: [ID], requestedAt: 2_000 });
    await apply(testFleet, aDeletion({ requestedAt: 1_000 }), creation);
    expect((await phasesIn(testFleet.store))[0]).not.toBe('gone');
    const states = (await testFleet.store.intents.list()).map(({ value }) => value.state);
    expect(states.filter((state) => state === 'open')).toEqual([]);
  });

  it('an intent that is done is not applied again', async () => {
    const testFleet = aTestFleet();
    const requestedAt = testFleet.clock.now();
    await apply(testFleet, anIntent({ machines: [ID], state: 'done', requestedAt }));
    expect(await machinesIn(testFleet.store)).toEqual([]);
  });
});

describe('applyIntents: what becomes of a machine', () => {
  it.each<[Intent['kind'], Phase, Phase]>([
    ['delete', 'failed', 'gone'],
    ['cancel', 'failed', 'failed'],
    ['delete', 'gone', 'gone'],
    ['delete', 'requested', 'gone'],
    ['cancel', 'requested', 'gone'],
  ])('%s: a machine that was %s is %s', async (kind, phase, expected) => {
    const testFleet = aTestFleet();
    const phaseSince = testFleet.clock.now();
    await testFleet.store.machines.create(ID, aMachine({ id: ID, phase, phaseSince }));
    await apply(testFleet, aDeletion({ kind }));
    expect(await phasesIn(testFleet.store)).toEqual([expected]);
  });

  it('a placed machine is gone at once, and its address is released', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await onePass(testFleet.fleet, testFleet);
    const [current] = await testFleet.store.machines.list();
    const { task: _task, ...machine } = current!.value;
    await testFleet.store.machines.replace(current!, { ...machine, phase: 'placed' });
    expect(await addressesInUse(testFleet.store)).toEqual(['10.10.10.11']);
    await apply(testFleet, aDeletion({ machines: [machine.id] }));
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { phase: 'gone', deletionReason: 'cli: requested by a test' },
    ]);
    expect(await addressesInUse(testFleet.store)).toEqual([]);
  });

  it('a cancellation leaves a machine alone whose VM is being created', async () => {
    const testFleet = aTestFleet();
    const { id } = await reachPhase(testFleet, 'creating');
    await apply(testFleet, aDeletion({ kind: 'cancel', machines: [id] }));
    await runPasses(testFleet, 30);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
  });

  it('a deletion of a machine that is being created leaves nothing behind', async () => {
    const testFleet = aTestFleet();
    const { id } = await reachPhase(testFleet, 'creating');
    await apply(testFleet, aDeletion({ machines: [id] }));
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { phase: 'deleting', deletionReason: 'cli: requested by a test' },
    ]);
    await runPasses(testFleet, 20);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    expect(existingResources(testFleet.hypervisor)).toMatchObject({ vms: [], isos: [] });
  });

  it('a failed deletion that a front end acknowledges ends as gone, not as failed', async () => {
    const testFleet = aTestFleet();
    const { id } = await reachPhase(testFleet, 'ready');
    const current = await testFleet.store.machines.get(id);
    const failure = { code: 'TASK_FAILED', message: 'no', at: 1, phase: 'booting' } as const;
    const description = [...testFleet.hypervisor.state.vms.values()].find(
      ({ vmId }) => vmId === current?.value.placement?.vmId,
    )?.options;
    description?.set(
      'description',
      (description.get('description') ?? '').replace(/ ready=\S+/, ''),
    );
    await testFleet.store.machines.replace(current!, {
      ...current!.value,
      phase: 'deleting',
      failure,
    });
    await apply(testFleet, aDeletion({ machines: [id] }));
    await runPasses(testFleet, 20);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });
});

describe('applyIntents: a machine that the settings do not allow', () => {
  const workers = aPool({ limits: { ...aPool().limits, max: 1 } });
  const OLDER = someSettings([workers]);
  const NEWER = someSettings([aPool(), aPool({ name: 'added' })]);

  /** Another replica accepts requests with newer settings. */
  async function requestElsewhere(...pools: readonly string[]) {
    const testFleet = aTestFleet(OLDER);
    const other = aFleet({ ...testFleet, settings: NEWER, seed: 9 });
    for (const pool of pools) await other.request(pool, 2, REASON);
    const phasesOf = async () =>
      (await machinesIn(testFleet.store)).map(({ pool, phase }) => `${pool} ${phase}`).toSorted();
    return { ...testFleet, testFleet, other, phasesOf };
  }

  it('waits for newer settings that allow it', async () => {
    const { testFleet, fleet, phasesOf } = await requestElsewhere('workers', 'added');
    await runPasses(testFleet, 30);
    expect(await phasesOf()).toEqual(['workers ready']);
    fleet.replaceSettings(NEWER);
    await runPasses(testFleet, 30);
    expect(await phasesOf()).toEqual([
      'added ready',
      'added ready',
      'workers ready',
      'workers ready',
    ]);
  });

  it('fails after a minute', async () => {
    const { testFleet, phasesOf } = await requestElsewhere('workers', 'added');
    await runPasses(testFleet, 62);
    expect(await phasesOf()).toEqual([
      'added failed',
      'added failed',
      'workers failed',
      'workers ready',
    ]);
    const codes = (await machinesIn(testFleet.store)).flatMap(({ failure }) => failure?.code ?? []);
    expect(new Set(codes)).toEqual(new Set(['CONFIG_INVALID', 'POOL_AT_MAXIMUM']));
  });

  it('fails at once when the request seems to be older or from the future', async () => {
    for (const offsetMs of [-60_000, 60_000]) {
      const testFleet = aTestFleet(OLDER);
      const requestedAt = testFleet.clock.now() + offsetMs;
      await apply(testFleet, anIntent({ pool: 'added', machines: [ID], requestedAt }));
      expect(await phasesIn(testFleet.store)).toEqual(['failed']);
    }
  });

  it('is gone when it is cancelled meanwhile, and is not created afterwards', async () => {
    const { testFleet, other, fleet, phasesOf } = await requestElsewhere('workers', 'added');
    await runPasses(testFleet, 30);
    await other.cancel('workers', 1, REASON);
    await other.cancel('added', 2, REASON);
    await runPasses(testFleet, 2);
    expect(await phasesOf()).toEqual(['added gone', 'added gone', 'workers gone', 'workers ready']);
    fleet.replaceSettings(NEWER);
    await runPasses(testFleet, 70);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
  });
});

describe('applyIntents: a machine that a worker reconciles at the same time', () => {
  it('is changed only after the worker has ended; until then the deletion stays open', async () => {
    const testFleet = aTestFleet();
    const { hypervisor, fleet, store, clock } = testFleet;
    const startVm = hypervisor.startVm.bind(hypervisor);
    const answers: (() => void)[] = [];
    hypervisor.startVm = (vm, options) =>
      new Promise((resolve) => {
        answers.push(() => resolve(startVm(vm, options)));
      });
    const finish = new AbortController();
    const { signal } = new AbortController();
    const driving = fleet.runDriver({ signal, finish: finish.signal });
    await fleet.scaleTo('workers', 1, REASON);
    for (let second = 0; second < 60 && answers.length === 0; second += 1) {
      await clock.advance(1_000);
    }
    const phases = await phasesIn(store);
    await fleet.scaleTo('workers', 0, REASON);
    for (let second = 0; second < 5; second += 1) await clock.advance(1_000);
    const openKinds = async () =>
      (await store.intents.list()).flatMap(({ value }) =>
        value.state === 'open' ? value.kind : [],
      );
    expect(await phasesIn(store)).toEqual(phases);
    expect(await openKinds()).toEqual(['delete']);
    for (const answer of answers) answer();
    for (let second = 0; second < 30; second += 1) await clock.advance(1_000);
    expect(await phasesIn(store)).toEqual(['gone']);
    expect(await openKinds()).toEqual([]);
    expect(existingResources(hypervisor).vms).toEqual([]);
    finish.abort();
    await advanceUntilSettled(clock, driving);
  });
});
