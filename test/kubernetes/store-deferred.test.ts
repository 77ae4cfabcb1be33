// SPDX-License-Identifier: Apache-2.0
// Writes that the Kubernetes store defers, on virtual time.
import { describe, expect, it, onTestFinished } from 'vitest';
import { expectPresent } from '../../src/ports/contract/store-fixture.contract.ts';
import { Cancelled } from '../../src/ports/errors.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import {
  aDrain,
  aMachine,
  aMachineId,
  anIntent,
  aPoolState,
} from '../../src/ports/fakes/sample-records.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import { DEFER_MS } from '../../src/ports/store.ts';
import type { Transport, TransportRequest } from '../../src/ports/transport.ts';
import { StoreBench, setUpBench, withoutWatches } from './store-bench.ts';

const COUNT = 100;
const MINUTE_MS = 60_000;

const ID = aMachineId();
const MACHINES = '/apis/pvescaler.dev/v1alpha1/namespaces/pvescaler/proxmoxmachines';
const DEFERRABLE = { deferMs: DEFER_MS };

describe('deferred writes', () => {
  it('are sent five minutes after the first of them, or with the next write to the object', async () => {
    const { bench, clock, writes } = setUpBench();
    const store = await bench.open();
    let machine = await store.machines.create(ID, aMachine());
    const replace = async (phase: 'placed' | 'creating' | 'configuring', options = {}) => {
      machine = await store.machines.replace(machine, aMachine({ phase }), options);
    };
    await replace('placed', DEFERRABLE);
    await clock.advance(4 * MINUTE_MS);
    await replace('creating', DEFERRABLE);
    await clock.advance(MINUTE_MS - 1_000);
    expect(writes()).toHaveLength(1);
    await clock.advance(1_000);
    expect(writes()).toHaveLength(2);
    await replace('configuring', DEFERRABLE);
    await store.drains.create(ID, aDrain());
    await clock.advance(10 * MINUTE_MS);
    expect(writes()).toHaveLength(3);
    const next = await bench.open();
    expect((await next.machines.get(ID))?.value.phase).toBe('configuring');
  });

  it('of an object are not sent with those of another one', async () => {
    const { bench, clock, writes } = setUpBench();
    const store = await bench.open();
    const ids = [aMachineId(1), aMachineId(2)];
    for (const id of ids) {
      const machine = await store.machines.create(id, aMachine({ id }));
      await store.machines.replace(machine, aMachine({ id, phase: 'placed' }), DEFERRABLE);
      await clock.advance(2 * MINUTE_MS);
    }
    await clock.advance(MINUTE_MS);
    expect(writes()).toHaveLength(3);
    await clock.advance(2 * MINUTE_MS);
    expect(writes()).toHaveLength(4);
  });

  it('that are due earlier than others before them are sent in time, those without a limit are not', async () => {
    const { bench, clock, writes } = setUpBench();
    const store = await bench.open();
    await store.pools.create('a', aPoolState(), DEFERRABLE);
    await store.pools.create('b', aPoolState(), { deferMs: 3_000 });
    const confirmed = await store.pools.create('c', aPoolState(), { deferMs: Infinity });
    await clock.advance(2_999);
    expect(writes()).toEqual([]);
    await clock.advance(1);
    expect(writes()).toHaveLength(1);
    await clock.advance(5 * MINUTE_MS);
    expect(writes()).toHaveLength(2);
    await clock.advance(60 * MINUTE_MS);
    expect(writes()).toHaveLength(2);
    await store.pools.replace(confirmed, aPoolState({ pool: 'c' }), { deferMs: 1_000 });
    await clock.advance(1_000);
    expect(writes()).toHaveLength(3);
  });

  it('that leave the object as it is are not sent', async () => {
    const { bench, clock, writes } = setUpBench();
    const store = await bench.open();
    const before = await store.pools.create('a', aPoolState());
    const changed = await store.pools.replace(before, aPoolState({ pool: 'b' }), DEFERRABLE);
    await store.pools.replace(changed, aPoolState(), DEFERRABLE);
    const added = await store.pools.create('c', aPoolState(), DEFERRABLE);
    await store.pools.remove(added, DEFERRABLE);
    const intent = anIntent();
    const requested = await store.intents.create(intent.id, intent, DEFERRABLE);
    await store.intents.replace(requested, { ...intent, state: 'done' });
    await clock.advance(10 * MINUTE_MS);
    await store.close();
    expect(writes()).toHaveLength(1);
  });

  it('of a new record are given up with the lease, or when another process has created it', async () => {
    const { bench, clock } = setUpBench();
    const store = await bench.open();
    const fence = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 5_000 });
    await store.pools.create('a', aPoolState(), { fence, ...DEFERRABLE });
    await store.pools.create('b', aPoolState(), DEFERRABLE);
    const other = await bench.open();
    await other.pools.create('b', aPoolState({ pool: 'other' }));
    await clock.advance(5 * MINUTE_MS);
    const pools = (await store.pools.list()).map(({ key, value }) => [key, value.pool]);
    expect(pools).toEqual([['b', 'other']]);
    expect(await other.pools.get('a')).toBeUndefined();
  });

  it('are given up when the lease is released by a process that may send nothing any more', async () => {
    const { bench, writes } = setUpBench();
    let leads = true;
    const fenced = { mayAct: () => leads, beginRequest: () => () => undefined };
    const store = await bench.open({ fence: fenced });
    const fence = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 60_000 });
    await store.intents.create('i', anIntent(), { fence, ...DEFERRABLE });
    await store.pools.create('a', aPoolState(), { fence, deferMs: Infinity });
    leads = false;
    await store.leases.release(fence);
    expect([await store.intents.list(), await store.pools.list()]).toEqual([[], []]);
    expect(writes()).toEqual([]);
  });

  it('of a request are removed when it is done, even if the response to its creation was lost', async () => {
    const { bench, clock, sim } = setUpBench();
    const store = await bench.open({}, (transport) => withoutWatches(transport));
    const intent = anIntent();
    const requested = await store.intents.create(intent.id, intent, { deferMs: 1_000 });
    sim.faults.add({ verb: 'POST', fault: { kind: 'disconnect-after' } });
    sim.faults.add({ verb: 'GET', fault: { kind: 'disconnect' } });
    await clock.advance(1_000);
    await store.intents.replace(requested, { ...intent, state: 'done' });
    expect(sim.list('pvescaler.dev/v1alpha1', 'proxmoxmachinerequests')).toEqual([]);
    expect((await store.intents.get(intent.id))?.value.state).toBe('done');
  });

  it('are sent in time beside one that cannot be sent', async () => {
    const { bench, clock, sim } = setUpBench();
    const store = await bench.open();
    await store.pools.create('bad', aPoolState(), { deferMs: 1_000 });
    await store.pools.create('good', aPoolState(), { deferMs: 3_000 });
    sim.faults.add({ verb: 'POST', fault: { kind: 'status', status: 403 }, times: 2 });
    await clock.advance(3_000);
    expect(sim.list('pvescaler.dev/v1alpha1', 'proxmoxpoolstates')).toHaveLength(1);
    await clock.advance(30_000);
    expect(sim.list('pvescaler.dev/v1alpha1', 'proxmoxpoolstates')).toHaveLength(2);
  });

  it('are sent before the lease is released', async () => {
    const { bench } = setUpBench();
    const store = await bench.open();
    const fence = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 60_000 });
    const machine = await store.machines.create(ID, aMachine(), { fence });
    const placed = aMachine({ phase: 'placed' });
    await store.machines.replace(machine, placed, { fence, ...DEFERRABLE });
    await store.leases.release(fence);
    const next = await bench.open();
    expect((await next.machines.get(ID))?.value).toEqual(placed);
  });

  it('of a lease that was lost are given up: the record is as before', async () => {
    const { bench, clock, writes } = setUpBench();
    const store = await bench.open();
    const fence = await store.leases.acquire({ name: 'l', holder: 'h', durationMs: 5_000 });
    const machine = await store.machines.create(ID, aMachine(), { fence });
    const placed = aMachine({ phase: 'placed' });
    await store.machines.replace(machine, placed, { fence, ...DEFERRABLE });
    await clock.advance(5 * MINUTE_MS);
    expect(writes()).toHaveLength(1);
    expect((await store.machines.get(ID))?.value).toEqual(aMachine());
    expect(bench.errors).toMatchObject([{ code: 'LEASE_LOST' }]);
  });

  it('of an earlier term are given up when the next one begins', async () => {
    const { bench, clock, writes } = setUpBench();
    const store = await bench.open();
    const request = { name: 'l', holder: 'h', durationMs: 5_000 };
    const fence = await store.leases.acquire(request);
    const machine = await store.machines.create(ID, aMachine(), { fence });
    const placed = aMachine({ phase: 'placed' });
    await store.machines.replace(machine, placed, { fence, ...DEFERRABLE });
    await clock.advance(6_000);
    await store.leases.acquire(request);
    await store.synchronize();
    expect((await store.machines.get(ID))?.value).toEqual(aMachine());
    await clock.advance(5 * MINUTE_MS);
    expect(writes()).toHaveLength(1);
  });

  it('yield to a write of another process', async () => {
    const { bench, clock } = setUpBench();
    const [one, two] = [await bench.open(), await bench.open()];
    const machine = await one.machines.create(ID, aMachine());
    await one.machines.replace(machine, aMachine({ phase: 'placed' }), DEFERRABLE);
    await two.synchronize();
    const other = expectPresent(await two.machines.get(ID));
    await two.machines.replace(other, aMachine({ phase: 'failed' }));
    await clock.advance(6 * MINUTE_MS);
    expect((await one.machines.get(ID))?.value.phase).toBe('failed');
  });

  it('are sent when the API server answers again', async () => {
    const { bench, sim, clock, writes } = setUpBench();
    const store = await bench.open();
    const machine = await store.machines.create(ID, aMachine());
    sim.faults.add({ verb: 'PUT', path: MACHINES, fault: { kind: 'disconnect' } });
    sim.faults.add({ verb: 'GET', path: `${MACHINES}/`, fault: { kind: 'disconnect' } });
    await store.machines.replace(machine, aMachine({ phase: 'placed' }), DEFERRABLE);
    await clock.advance(5 * MINUTE_MS);
    expect(bench.errors).toMatchObject([{ code: 'KUBERNETES_UNREACHABLE' }]);
    await clock.advance(30_000);
    expect(writes()).toHaveLength(3);
    const next = await bench.open();
    expect((await next.machines.get(ID))?.value.phase).toBe('placed');
  });
});

/** From now on a request, but no watch, is answered after `respond`. */
async function deferMany(
  respond: (clock: VirtualClock, request: TransportRequest) => Promise<void>,
) {
  const clock = new VirtualClock();
  const bench = new StoreBench(clock);
  let isSlow = false;
  let inProgress = 0;
  let most = 0;
  const slowed = (transport: Transport): Transport => ({
    close: () => transport.close(),
    request: async (request) => {
      if (!isSlow || request.url.includes('watch=1')) return transport.request(request);
      inProgress += 1;
      most = Math.max(most, inProgress);
      await respond(clock, request).finally(() => {
        inProgress -= 1;
      });
      return transport.request(request);
    },
  });
  const store = await bench.open({}, slowed);
  onTestFinished(() => advanceUntilSettled(clock, bench.cleanup()));
  for (let at = 0; at < COUNT; at += 1) {
    const id = aMachineId(at);
    const machine = await store.machines.create(id, aMachine({ id }));
    const placed = aMachine({ id, phase: 'placed' });
    await store.machines.replace(machine, placed, { deferMs: DEFER_MS });
  }
  isSlow = true;
  return { bench, clock, store, mostInProgress: () => most };
}

describe('deferred writes of many objects', () => {
  it('are sent a few at a time', async () => {
    const { clock, bench, mostInProgress } = await deferMany((at) => at.sleep(5));
    await clock.advance(5 * MINUTE_MS);
    for (let step = 0; step < COUNT; step += 1) await clock.advance(5);
    expect(mostInProgress()).toBeLessThanOrEqual(16);
    const machines = await (await bench.open()).machines.list();
    expect(machines).toHaveLength(COUNT);
    expect(new Set(machines.map(({ value }) => value.phase))).toEqual(new Set(['placed']));
  });

  it('do not hold up the end of the process one after the other while the API server does not answer', async () => {
    const { clock, store } = await deferMany(
      (_clock, { signal }) =>
        new Promise((_resolve, reject) => {
          const onAbort = () => reject(new Cancelled('CANCELLED', 'aborted'));
          signal?.addEventListener('abort', onAbort, { once: true });
        }),
    );
    const before = clock.monotonic();
    await advanceUntilSettled(clock, store.close());
    expect(clock.monotonic() - before).toBeLessThanOrEqual(MINUTE_MS);
  });
});
