// SPDX-License-Identifier: Apache-2.0
// The Kubernetes store with other clients, lost responses and invalid objects, on virtual time.
import * as fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { expectPresent, rejectionCode } from '../../src/ports/contract/store-fixture.contract.ts';
import { Cancelled } from '../../src/ports/errors.ts';
import {
  aDrain,
  aMachine,
  aMachineId,
  anIntent,
  aPoolState,
} from '../../src/ports/fakes/sample-records.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import { DEFER_MS, type Store } from '../../src/ports/store.ts';
import type { Transport } from '../../src/ports/transport.ts';
import { type FaultKind, KubernetesSim } from '../../src/sim/kubernetes/index.ts';
import { SimTransport } from './sim-transport.ts';
import { StoreBench, setUpBench, withoutWatches } from './store-bench.ts';

const ID = aMachineId();
const API = 'pvescaler.dev/v1alpha1';
const DEFERRABLE = { deferMs: DEFER_MS };

function edit(sim: KubernetesSim, change: object): void {
  const metadata = { name: ID, namespace: 'pvescaler' };
  sim.change(API, 'proxmoxmachines', { metadata, ...change });
}

describe('a machine and its drain', () => {
  it('are one object, whose writes do not make the other stale', async () => {
    const { bench, sim } = setUpBench();
    const store = await bench.open();
    const machine = await store.machines.create(ID, aMachine());
    const drain = await store.drains.create(ID, aDrain());
    const placed = await store.machines.replace(machine, aMachine({ phase: 'placed' }));
    const tainted = await store.drains.replace(drain, aDrain({ state: 'tainted' }));
    expect(sim.list(API, 'proxmoxmachines')).toHaveLength(1);
    await store.drains.remove(tainted);
    expect(await store.machines.get(ID)).toEqual(placed);
    await store.machines.remove(placed);
    expect(sim.list(API, 'proxmoxmachines')).toEqual([]);
  });

  it('can be written by two processes', async () => {
    const { bench } = setUpBench();
    const [one, two] = [await bench.open(), await bench.open()];
    const machine = await one.machines.create(ID, aMachine());
    await two.synchronize();
    await two.drains.create(ID, aDrain());
    await one.machines.replace(machine, aMachine({ phase: 'placed' }));
    await two.synchronize();
    expect((await two.machines.get(ID))?.value.phase).toBe('placed');
    expect((await one.drains.get(ID))?.value).toEqual(aDrain());
  });

  it('leave the drain when the machine is removed, and its machine may come again', async () => {
    const { bench } = setUpBench();
    const store = await bench.open();
    const machine = await store.machines.create(ID, aMachine({ intent: 'i' }));
    await store.drains.create(ID, aDrain());
    await store.machines.remove(machine);
    const next = await bench.open();
    expect(await next.machines.list()).toEqual([]);
    expect(await next.drains.list()).toHaveLength(1);
    await next.machines.create(ID, aMachine({ pool: 'others' }));
    await store.synchronize();
    expect((await store.machines.get(ID))?.value).toEqual(aMachine({ pool: 'others' }));
    expect(await store.drains.list()).toHaveLength(1);
  });
});

describe('other clients', () => {
  it('may annotate an object without making its record stale', async () => {
    const { bench, sim } = setUpBench();
    const store = await bench.open();
    const machine = await store.machines.create(ID, aMachine());
    const pool = await store.pools.create('p', aPoolState());
    edit(sim, { metadata: { name: ID, namespace: 'pvescaler', annotations: { a: 'b' } } });
    sim.change(API, 'proxmoxpoolstates', {
      metadata: { name: 'p', namespace: 'pvescaler', labels: { a: 'b' } },
    });
    await store.machines.replace(machine, aMachine({ phase: 'placed' }));
    await store.pools.replace(pool, aPoolState({ allocatable: {} }));
    for (const plural of ['proxmoxmachines', 'proxmoxpoolstates']) {
      const [object] = sim.list(API, plural);
      expect(JSON.stringify(object?.metadata)).toContain('"a":"b"');
    }
  });

  it('are seen without synchronize', async () => {
    const { bench, sim, clock } = setUpBench();
    const store = await bench.open();
    await store.machines.create(ID, aMachine());
    const since = await store.revision();
    edit(sim, { status: { phase: 'failed', phaseSince: '2026-01-01T00:00:00Z', attempts: 3 } });
    await clock.advance(1);
    expect((await store.machines.get(ID))?.value).toMatchObject({ phase: 'failed', attempts: 3 });
    expect((await store.changes(since))?.machines).toHaveLength(1);
    sim.remove(API, 'proxmoxmachines', { name: ID, namespace: 'pvescaler' });
    await clock.advance(1);
    expect(await store.machines.list()).toEqual([]);
  });

  it('that delete and create an object make another record of it', async () => {
    const { bench } = setUpBench();
    const [one, two] = [await bench.open(), await bench.open()];
    const seen = await one.pools.create('p', aPoolState());
    await two.synchronize();
    await two.pools.remove(expectPresent(await two.pools.get('p')));
    await two.pools.create('p', aPoolState());
    expect(await rejectionCode(one.pools.replace(seen, aPoolState()))).toBe('RECORD_CHANGED');
    expect(await rejectionCode(one.pools.remove(seen))).toBe('RECORD_CHANGED');
  });

  it('that delete and create an object unseen make another record of it, even of an equal one', async () => {
    const { bench, clock } = setUpBench();
    const store = await bench.open({}, (transport) => withoutWatches(transport));
    const other = await bench.open();
    const machine = await store.machines.create(ID, aMachine());
    await clock.advance(1_000);
    await other.machines.remove(expectPresent(await other.machines.get(ID)));
    await other.machines.create(ID, aMachine());
    await store.synchronize();
    const replacing = store.machines.replace(machine, aMachine({ phase: 'placed' }));
    expect(await rejectionCode(replacing)).toBe('RECORD_CHANGED');
  });
});

describe('a request that another process has deleted', () => {
  it('stays visible for five seconds: its machines may arrive after its deletion', async () => {
    const { bench, clock } = setUpBench();
    const [driver, other] = [await bench.open(), await bench.open()];
    const intent = await driver.intents.create('i', anIntent({ id: 'i' }));
    await other.synchronize();
    await driver.intents.replace(intent, anIntent({ id: 'i', state: 'done' }));
    await clock.advance(4_999);
    expect((await other.intents.get('i'))?.value.state).toBe('open');
    const since = await other.revision();
    await clock.advance(1);
    expect(await other.intents.get('i')).toBeUndefined();
    expect((await other.changes(since))?.removed).toEqual([{ collection: 'intents', key: 'i' }]);
  });

  it('is gone after synchronize', async () => {
    const { bench, clock } = setUpBench();
    const [driver, other] = [await bench.open(), await bench.open()];
    const intent = await driver.intents.create('i', anIntent({ id: 'i' }));
    await other.synchronize();
    await driver.intents.remove(intent);
    await clock.advance(1);
    expect(await other.intents.list()).toHaveLength(1);
    await other.synchronize();
    expect(await other.intents.list()).toEqual([]);
  });
});

describe('an invalid object', () => {
  const broken = { status: { phase: 'ready', phaseSince: '2026-01-01T00:00:00Z', attempts: 0.5 } };

  it('is reported, and its last valid record stays in effect until it is corrected', async () => {
    const { bench, sim, clock } = setUpBench();
    const store = await bench.open();
    const machine = await store.machines.create(ID, aMachine());
    await store.machines.create(aMachineId(2), aMachine({ id: aMachineId(2) }));
    sim.install([]);
    edit(sim, { status: { ...broken.status, attempts: 1, drain: { state: 'wanted' } } });
    await clock.advance(1);
    expect(bench.errors).toMatchObject([{ code: 'RECORD_INVALID' }]);
    expect(bench.errors[0]?.message).toContain(ID);
    expect(await store.machines.list()).toHaveLength(2);
    expect(await store.machines.get(ID)).toEqual(machine);
    const write = store.machines.replace(machine, aMachine({ phase: 'placed' }));
    expect(await rejectionCode(write)).toBe('RECORD_INVALID');
    edit(sim, { status: { drain: null } });
    await clock.advance(1);
    expect((await store.machines.get(ID))?.value.phase).toBe('ready');
  });

  it('is not overwritten by what was deferred before, which is sent once it is corrected', async () => {
    const { bench, sim, clock, writes } = setUpBench();
    const store = await bench.open();
    const machine = await store.machines.create(ID, aMachine());
    await store.machines.replace(machine, aMachine({ phase: 'placed' }), DEFERRABLE);
    const [object] = sim.list(API, 'proxmoxmachines');
    const annotation = Object.entries(object?.metadata.annotations ?? {}).at(0)?.[1];
    const status: object = JSON.parse(String(annotation));
    sim.install([]);
    edit(sim, { status: { ...status, drain: { state: 'wanted' } } });
    await clock.advance(6 * 60_000);
    expect(writes()).toHaveLength(1);
    edit(sim, { status: { drain: null } });
    await clock.advance(60_000);
    expect(writes()).toHaveLength(2);
    const next = await bench.open();
    expect((await next.machines.get(ID))?.value.phase).toBe('placed');
  });

  it('that was never valid hides only itself, and its key stays taken', async () => {
    const { bench, sim } = setUpBench();
    sim.create(API, 'proxmoxmachines', { metadata: { name: ID, namespace: 'pvescaler' } });
    edit(sim, { status: { phase: 'ready' } });
    const store = await bench.open();
    await store.machines.create(aMachineId(2), aMachine({ id: aMachineId(2) }));
    expect(await store.machines.list()).toHaveLength(1);
    expect(await rejectionCode(store.machines.create(ID, aMachine()))).toBe('RECORD_INVALID');
    expect(bench.errors).toMatchObject([{ code: 'RECORD_INVALID' }]);
  });
});

describe('the outcome of a write of the driver', () => {
  /** What its fence was told, for each write. */
  async function outcomesOf(fault: FaultKind | undefined): Promise<readonly string[]> {
    const { bench, sim } = setUpBench();
    const outcomes: string[] = [];
    const fence = {
      mayAct: () => true,
      beginRequest: () => (outcome: string) => void outcomes.push(outcome),
    };
    const store = await bench.open({ fence });
    const lease = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 60_000 });
    if (fault !== undefined) sim.faults.add({ verb: 'POST', fault });
    await store.machines.create(ID, aMachine(), { fence: lease }).catch(() => undefined);
    return outcomes;
  }

  it('is known when the API server has answered, whatever it says', async () => {
    expect(await outcomesOf(undefined)).toEqual(['settled']);
    expect(await outcomesOf({ kind: 'status', status: 409 })).toContain('settled');
    expect(await outcomesOf({ kind: 'status', status: 429 })).toEqual(['settled']);
  });

  it('is unknown when the response is lost or an error of the server: a successor waits for it', async () => {
    expect(await outcomesOf({ kind: 'disconnect-after' })).toEqual(['unknown']);
    expect(await outcomesOf({ kind: 'status', status: 500 })).toEqual(['unknown']);
  });
});

it('a record that was removed stays removed while the watch still shows it', async () => {
  const { bench, sim, clock } = setUpBench();
  const store = await bench.open();
  const machine = await store.machines.create(ID, aMachine());
  await clock.advance(1_000);
  sim.watches.stall();
  await store.machines.remove(machine);
  expect(await store.machines.get(ID)).toBeUndefined();
  await store.machines.create(aMachineId(2), aMachine({ id: aMachineId(2) }));
  expect(await store.machines.get(ID)).toBeUndefined();
});

describe('a write whose response is lost', () => {
  it.each([
    ['creation', 'POST', (store: Store) => store.intents.create('i', anIntent())],
    [
      'replacement',
      'PUT',
      async (store: Store) => {
        const machine = await store.machines.create(ID, aMachine());
        return store.machines.replace(machine, aMachine({ phase: 'placed' }));
      },
    ],
    [
      'removal',
      'DELETE',
      async (store: Store) => store.pools.remove(await store.pools.create('p', aPoolState())),
    ],
  ])('succeeds if it took effect: %s', async (_, verb, write) => {
    const { bench, sim } = setUpBench();
    const store = await bench.open();
    sim.faults.add({ verb, fault: { kind: 'disconnect-after' } });
    await write(store);
    const next = await bench.open();
    expect(await next.intents.list()).toHaveLength(verb === 'POST' ? 1 : 0);
    expect(await next.machines.list()).toHaveLength(verb === 'PUT' ? 1 : 0);
    expect(await next.pools.list()).toEqual([]);
  });

  it('fails if it did not take effect, and can be repeated', async () => {
    const { bench, sim } = setUpBench();
    const store = await bench.open();
    sim.faults.add({ verb: 'POST', fault: { kind: 'disconnect' } });
    const create = () => store.intents.create('i', anIntent());
    expect(await rejectionCode(create())).toBe('KUBERNETES_UNREACHABLE');
    expect((await create()).value).toEqual(anIntent());
  });

  it('fails while nothing can be read; repeated, a creation finds itself', async () => {
    const { bench, sim } = setUpBench();
    const store = await bench.open({}, (transport) => withoutWatches(transport));
    sim.faults.add({ verb: 'POST', fault: { kind: 'disconnect-after' } });
    sim.faults.add({ verb: 'GET', fault: { kind: 'disconnect' } });
    const create = () => store.intents.create('i', anIntent());
    expect(await rejectionCode(create())).toBe('KUBERNETES_UNREACHABLE');
    expect((await create()).value).toEqual(anIntent());
    expect(sim.list(API, 'proxmoxmachinerequests')).toHaveLength(1);
    expect(await rejectionCode(create())).toBe('RECORD_EXISTS');
  });
});

describe('a former leader', () => {
  /** A process that stops, until it is woken, when its next write is decided and before or after it is sent. */
  async function freeze(bench: StoreBench, isSent: boolean) {
    let isLeader = true;
    const frozen = Promise.withResolvers<void>();
    const woken = Promise.withResolvers<void>();
    const outcomes: string[] = [];
    const fence = {
      mayAct: () => isLeader,
      beginRequest: () => (outcome: string) => void outcomes.push(outcome),
    };
    let isArmed = false;
    const freezing = (transport: Transport): Transport => ({
      request: async (request) => {
        if (!isArmed || request.method === 'GET') return transport.request(request);
        isArmed = false;
        frozen.resolve();
        await woken.promise;
        // As the transport of the program does.
        if (!isSent && request.maySend?.() === false)
          throw new Cancelled('CANCELLED', 'not sent', { facts: { requestSent: false } });
        return transport.request(request);
      },
      close: () => transport.close(),
    });
    const store = await bench.open({ fence }, freezing);
    const lease = await store.leases.acquire({ name: 'l', holder: 'a', durationMs: 3_600_000 });
    return {
      store,
      options: { fence: lease },
      outcomes,
      begin: async (write: () => Promise<unknown>) => {
        isArmed = true;
        const result = rejectionCode(write());
        await frozen.promise;
        isLeader = false;
        return result;
      },
      wake: () => woken.resolve(),
    };
  }

  it('that wakes before its write is sent does not send it', async () => {
    const { bench, writes } = setUpBench();
    const former = await freeze(bench, false);
    const machine = await former.store.machines.create(ID, aMachine(), former.options);
    const sent = writes().length;
    const code = former.begin(() =>
      former.store.machines.replace(machine, aMachine({ phase: 'placed' }), former.options),
    );
    former.wake();
    expect(await code).toBe('LEASE_LOST');
    // The request was recorded by the wrapped transport only if it was sent.
    expect(writes()).toHaveLength(sent);
    expect(former.outcomes).toEqual(['settled', 'settled']);
  });

  it.each([
    ['replacement', 'RECORD_CHANGED'],
    ['removal', 'RECORD_CHANGED'],
    ['creation', 'RECORD_EXISTS'],
  ])('whose write arrives after one of its successor is refused: %s', async (what, refusal) => {
    const { bench } = setUpBench();
    const former = await freeze(bench, true);
    const { store, options } = former;
    const machine = await store.machines.create(ID, aMachine(), options);
    const other = aMachineId(2);
    const code = former.begin(() => {
      if (what === 'creation') return store.machines.create(other, aMachine(), options);
      if (what === 'removal') return store.machines.remove(machine, options);
      return store.machines.replace(machine, aMachine({ phase: 'failed' }), options);
    });
    const successor = await bench.open();
    const seen = expectPresent(await successor.machines.get(ID));
    const placed = await successor.machines.replace(seen, aMachine({ phase: 'placed' }));
    const created = await successor.machines.create(other, aMachine({ attempts: 2 }));
    former.wake();
    expect(await code).toBe(refusal);
    await successor.synchronize();
    const values = (await successor.machines.list()).map(({ value }) => value);
    expect(values).toEqual([placed.value, created.value]);
  });
});

describe('staleness', () => {
  it('names the first kind that cannot be followed, until it can again', async () => {
    const { bench, sim, clock } = setUpBench();
    const store = await bench.open();
    await clock.advance(300_000);
    expect(store.staleness()).toBeUndefined();
    sim.faults.add({ path: 'proxmoxmachinerequests', fault: { kind: 'disconnect' }, times: 1_000 });
    await clock.advance(180_000);
    expect(store.staleness()).toMatch(/^proxmoxmachinerequests could not be read since 2026-/);
    sim.faults.clear();
    await clock.advance(60_000);
    expect(store.staleness()).toBeUndefined();
  });
});

it('says how to install missing definitions', async () => {
  const clock = new VirtualClock();
  const bench = new StoreBench(clock);
  onTestFinished(() => bench.cleanup());
  const empty = new KubernetesSim({ clock, random: { uuid: () => 'u' } as never });
  const opened = bench.open({ transport: new SimTransport(empty) });
  await expect(opened).rejects.toMatchObject({
    code: 'STORE_NOT_INSTALLED',
    message: expect.stringContaining('kubectl apply -f deploy/crds'),
  });
});

it('two processes agree after any sequence of writes and delays', async () => {
  const step = fc.record({
    process: fc.nat(1),
    key: fc.constantFrom('a', 'b'),
    action: fc.constantFrom('put', 'defer', 'remove', 'drain', 'wait', 'list', 'compact'),
    ms: fc.constantFrom(1, 400, 3_000, 50_000, 200_000),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const clock = new VirtualClock();
      const bench = new StoreBench(clock);
      const stores = [await bench.open(), await bench.open()];
      let count = 0;
      for (const { process, key, action, ms } of steps) {
        const store = stores[process] ?? expect.unreachable();
        count += 1;
        if (action === 'wait') await clock.advance(ms);
        else if (action === 'list') await store.synchronize();
        else if (action === 'compact') bench.sim.compact();
        else await change(store, { key, action, count }).catch(ignoreConflict);
      }
      await clock.advance(6 * 60_000);
      const read = async (store: Store) => [
        (await store.machines.list()).map(({ key, value }) => [key, value]),
        (await store.drains.list()).map(({ key, value }) => [key, value]),
      ];
      const [one, two] = [await read(stores[0]!), await read(stores[1]!)];
      expect(one).toEqual(two);
      expect(await read(await bench.open())).toEqual(one);
      await bench.cleanup();
    }),
    { numRuns: 25 },
  );
});

interface Change {
  readonly key: string;
  readonly action: 'put' | 'defer' | 'remove' | 'drain';
  readonly count: number;
}

async function change(store: Store, { key, action, count }: Change): Promise<void> {
  const machine = await store.machines.get(key);
  const drain = await store.drains.get(key);
  const deferMs = action === 'defer' ? DEFER_MS : 0;
  if (action === 'drain' && drain === undefined) await store.drains.create(key, aDrain());
  else if (action === 'drain') await store.drains.remove(expectPresent(drain));
  else if (machine === undefined) await store.machines.create(key, aMachine({ attempts: count }));
  else if (action === 'remove') await store.machines.remove(machine);
  else await store.machines.replace(machine, aMachine({ attempts: count }), { deferMs });
}

function ignoreConflict(error: unknown): void {
  const code = error instanceof Error && 'code' in error ? error.code : error;
  if (code !== 'RECORD_CHANGED' && code !== 'RECORD_NOT_FOUND' && code !== 'RECORD_EXISTS')
    throw error;
}
