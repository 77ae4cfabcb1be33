// SPDX-License-Identifier: Apache-2.0
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addressesInUse } from '../model/held-addresses.ts';
import type { Lease } from '../model/lease.ts';
import { MemoryCluster } from '../ports/fakes/memory-cluster.ts';
import { MemoryStore, SimulatedCrash } from '../ports/fakes/memory-store.ts';
import { aMachine, aMachineId, aPoolState } from '../ports/fakes/sample-records.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { Store } from '../ports/store.ts';
import { excludeDriver } from './exclude-driver.ts';
import {
  canonicalJson,
  formatStateDocument,
  parseStateDocument,
  SCHEMA_VERSION,
} from './state-document.ts';
import { countRecords, importState, readJournal, readRecords } from './transfer-state.ts';

const FIRST_VERSION = readFileSync(
  join(import.meta.dirname, 'testing', 'state-export-v1.json'),
  'utf8',
);

const { identity, records, journal } = parseStateDocument(FIRST_VERSION, 'a.json');
/** The same as this version exports it. */
const UPGRADED = formatStateDocument(
  { identity, records, journal: journal! },
  Date.UTC(2026, 0, 2),
);

function aSite() {
  const clock = new VirtualClock();
  const exclusion = (store: Store, cluster?: MemoryCluster) => ({
    store,
    cluster,
    clock,
    holder: 'command',
    signal: new AbortController().signal,
    onWait: () => undefined,
  });
  const load = (store: Store, text = FIRST_VERSION) =>
    excludeDriver(exclusion(store), (fence) =>
      importState(store, parseStateDocument(text, 'a.json'), fence),
    );
  const dump = async (store: Store) =>
    formatStateDocument(
      {
        identity: await store.identity(),
        records: await readRecords(store),
        journal: await readJournal(store),
      },
      Date.UTC(2026, 0, 2),
    );
  return { clock, exclusion, load, dump, newStore: () => new MemoryStore({ clock }) };
}

describe('importState', () => {
  it('writes every record of an export of the first schema version, except its addresses', async () => {
    const { newStore, load, dump } = aSite();
    const store = newStore();
    expect(await load(store)).toEqual({ created: 11, unchanged: 0, journalEntries: 2 });
    const written = await readRecords(store);
    expect(countRecords(written)).toEqual({
      intents: 4,
      machines: 4,
      drains: 1,
      pools: 2,
    });
    const { addresses: _, ...kept } = JSON.parse(FIRST_VERSION).records;
    expect(written).toEqual(kept);
    expect(JSON.parse(await dump(store))).toEqual(JSON.parse(UPGRADED));
  });

  it('leaves no lease behind', async () => {
    const { clock, newStore, load } = aSite();
    const store = newStore();
    await load(store);
    const request = { name: 'reconcile', holder: 'driver', durationMs: 1_000 };
    expect(await store.leases.acquire(request)).toMatchObject({ expiresAt: clock.now() + 1_000 });
  });

  it('continues after a crash at every write, and can be repeated', async () => {
    for (let writes = 1; writes < 20; writes += 1) {
      const { clock, newStore, load, dump } = aSite();
      const store = newStore();
      store.crashAfterWrites(writes);
      const crashed = await load(store).then(
        () => false,
        (error: unknown) => error instanceof SimulatedCrash,
      );
      const next = store.reopen();
      await clock.advance(60_000);
      const { created, unchanged } = await load(next);
      expect(created + unchanged).toBe(11);
      expect(await load(next)).toEqual({ created: 0, unchanged: 11, journalEntries: 0 });
      expect(JSON.parse(await dump(next))).toEqual(JSON.parse(UPGRADED));
      if (!crashed) return;
    }
    throw new Error('the import never ended');
  });

  it('refuses a target with a record that differs, or that is not in the export, and changes nothing', async () => {
    for (const other of [
      (store: Store) => store.pools.create('workers', aPoolState()),
      (store: Store) => store.pools.create('other', aPoolState({ pool: 'other' })),
      (store: Store) => store.machines.create(aMachine().id, aMachine()),
    ]) {
      const { newStore, load } = aSite();
      const store = newStore();
      await other(store);
      const before = await readRecords(store);
      await expect(load(store)).rejects.toMatchObject({ code: 'RECORD_EXISTS' });
      expect(await readRecords(store)).toEqual(before);
      expect(await store.identity()).toEqual({});
    }
  });

  it('refuses a target of another installation', async () => {
    const { newStore, load } = aSite();
    const store = newStore();
    await store.identity({ id: 'other' });
    await expect(load(store)).rejects.toMatchObject({
      code: 'RECORD_EXISTS',
      message: expect.stringContaining('it has the cluster id other'),
    });
  });

  it('leaves the journal of a target that has other entries', async () => {
    const { newStore, load } = aSite();
    const store = newStore();
    const entry = { at: 1, kind: 'did', subject: {}, reason: 'Test', message: 'own' } as const;
    await store.journal.append(entry);
    expect(await load(store)).toMatchObject({ journalEntries: 0 });
    expect(await readJournal(store)).toEqual([entry]);
  });
});

describe('excludeDriver', () => {
  const work = (fence: () => Promise<Lease>) => fence();

  it('refuses while a driver holds the lease of the store, with its name', async () => {
    const { clock, newStore, exclusion } = aSite();
    const store = newStore();
    await store.leases.acquire({ name: 'reconcile', holder: 'driver-1', durationMs: 15_000 });
    await expect(excludeDriver(exclusion(store), work)).rejects.toMatchObject({
      code: 'LEASE_HELD',
      message: 'a driver is active: driver-1',
    });
    await clock.advance(15_001);
    await excludeDriver(exclusion(store), work);
  });

  it('reads the records again when it holds the lease, before the work', async () => {
    const { newStore, exclusion } = aSite();
    const store = newStore();
    const steps: string[] = [];
    store.synchronize = async () => {
      const lease = await store.leases.read('reconcile');
      steps.push(`records read while ${lease?.holder} holds the lease`);
    };
    await excludeDriver(exclusion(store), async () => void steps.push('work'));
    expect(steps).toEqual(['records read while command holds the lease', 'work']);
  });

  it('keeps the leases during long work', async () => {
    const { clock, newStore, exclusion } = aSite();
    const store = newStore();
    const cluster = new MemoryCluster({ clock, random: new SeededRandom(1) });
    const request = { name: 'reconcile', holder: 'driver', durationMs: 15_000 };
    await excludeDriver(exclusion(store, cluster), async (fence) => {
      for (let seconds = 0; seconds < 120; seconds += 10) {
        await clock.advance(10_000);
        const lease = await fence();
        await store.pools.create(`at-${seconds}`, aPoolState(), { fence: lease });
        await expect(store.leases.acquire(request)).rejects.toMatchObject({ code: 'LEASE_HELD' });
        await expect(cluster.acquireLease(request)).rejects.toMatchObject({ code: 'LEASE_HELD' });
      }
    });
    await store.leases.acquire(request);
    await cluster.acquireLease(request);
  });

  it('refuses while a driver renews the Lease of the cluster, and waits for one that does not', async () => {
    const { clock, newStore, exclusion } = aSite();
    const cluster = new MemoryCluster({ clock, random: new SeededRandom(1) });
    const request = { name: 'reconcile', holder: 'driver-2', durationMs: 50_000 };
    let lease = await cluster.acquireLease(request);
    const refused = excludeDriver(exclusion(newStore(), cluster), work).catch(
      (error: unknown) => error,
    );
    for (let seconds = 0; seconds < 100; seconds += 5) {
      await clock.advance(5_000);
      lease = { ...lease, ...(await cluster.renewLease(lease, request.durationMs)) };
    }
    expect(await refused).toMatchObject({
      code: 'LEASE_HELD',
      message: 'a driver is active: driver-2',
    });
    const allowed = excludeDriver(exclusion(newStore(), cluster), work);
    await clock.advance(60_000);
    expect(await allowed).toMatchObject({ holder: 'command' });
  });
});

describe('parseStateDocument', () => {
  const exportOfVersion = (schemaVersion: number, content: object) => {
    const { apiVersion, kind } = JSON.parse(FIRST_VERSION);
    const unsigned = { apiVersion, kind, schemaVersion, ...content };
    const digest = createHash('sha256').update(canonicalJson(unsigned)).digest('hex');
    return JSON.stringify({ ...unsigned, checksum: `sha256:${digest}` });
  };

  const withVersion = (schemaVersion: number) =>
    JSON.stringify({ ...JSON.parse(FIRST_VERSION), schemaVersion });

  const withInvalidMachine = () => {
    const { identity, records, exportedAt } = JSON.parse(FIRST_VERSION);
    const [id = ''] = Object.keys(records.machines);
    records.machines[id].phase = 'flying';
    return formatStateDocument({ identity, records }, Date.parse(exportedAt));
  };

  it('keeps the addresses of VMs that were left alone, also without a record of their machine', () => {
    const { identity, records, exportedAt } = JSON.parse(FIRST_VERSION);
    const [over, removed] = [aMachineId(1), aMachineId(9)];
    const placement = { region: 'lab', host: 'pve1', name: 'w', diskStorage: 'local-lvm' };
    records.machines = {
      [over]: aMachine({
        id: over,
        phase: 'failed',
        placement: { ...placement, vmId: 1_250, addresses: ['10.0.0.1/24'] },
      }),
    };
    const address = { region: 'lab', pool: 'workers', leasedAt: 7 };
    records.addresses = {
      a: { ...address, address: '10.0.0.1', machine: over, vmId: 1_250 },
      b: { ...address, address: '10.0.0.2', machine: removed, vmId: 1_251 },
      c: { ...address, address: '2001:db8::2', machine: removed, vmId: 1_251 },
      d: { ...address, address: '10.0.0.4', machine: aMachineId(8), vmId: 1_253, releasedAt: 8 },
    };
    const text = exportOfVersion(1, { identity, records, exportedAt });
    const machines = Object.values(parseStateDocument(text, 'a.json').records.machines);
    expect(machines.map(({ id, phase }) => [id, phase])).toEqual([
      [over, 'failed'],
      [removed, 'gone'],
    ]);
    expect(addressesInUse(machines)).toEqual(['10.0.0.1/24', '10.0.0.2', '2001:db8::2']);
  });

  it.each([
    ['text', 'no document', 'it is not JSON'],
    ['another kind', '{"apiVersion":"v1","kind":"List"}', 'document.apiVersion is not one of'],
    ['an incomplete file', FIRST_VERSION.slice(0, -40), 'it is not JSON'],
    [
      'a changed record',
      FIRST_VERSION.replace('"attempts": 2', '"attempts": 3'),
      'its checksum does not match',
    ],
    [
      'an invalid record',
      withInvalidMachine(),
      'document.records.machines.00000000-0000-4000-8000-000000000001.phase is not one of',
    ],
    ['schema version 0', withVersion(0), 'schema version 0 does not exist'],
  ])('refuses %s', (_what, text, problem) => {
    expect(() => parseStateDocument(text, 'a.json')).toThrow(
      `a.json cannot be imported: ${problem}`,
    );
  });

  it('refuses a newer schema version with what it reads', () => {
    const text = withVersion(99);
    expect(() => parseStateDocument(text, 'a.json')).toThrow(
      `a.json has schema version 99; this version of pvescaler reads versions up to ${SCHEMA_VERSION}`,
    );
  });

  it('accepts a document whose keys were sorted and whose white space was changed', () => {
    const sorted = JSON.stringify(
      Object.fromEntries(Object.entries(JSON.parse(FIRST_VERSION)).toReversed()),
    );
    expect(parseStateDocument(sorted, 'a.json').schemaVersion).toBe(SCHEMA_VERSION);
  });
});
