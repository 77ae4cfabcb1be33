// SPDX-License-Identifier: Apache-2.0
// Random regions, small enough that hosts and storages fill up.
import * as fc from 'fast-check';
import { type PlacementRequest, type Source, STRATEGIES } from '../hosts/decision.ts';
import type { RegionFacts } from '../hosts/facts.ts';

const HOSTS = ['pve1', 'pve2', 'pve3', 'pve4'] as const;
const STORAGES = ['fast', 'nfs', 'slow'] as const;
const SHARED = 'nfs';

const hostName = fc.constantFrom(...HOSTS);
const storageName = fc.constantFrom(...STORAGES);
const aFactor = fc.constantFrom(0.7, 1, 1.1, 1.15, 2, 3);

const storage = fc
  .record({
    name: storageName,
    active: usually(true, false),
    content: usually(['images', 'import', 'iso'], ['iso']),
    totalBytes: fc.constantFrom(400, 800),
    freeBytes: fc.nat(400),
  })
  .map((one) => ({ ...one, shared: one.name === SHARED }));

const host = fc.record({
  region: fc.constant('lab'),
  name: hostName,
  online: usually(true, false),
  cpus: fc.integer({ min: 2, max: 8 }),
  memoryBytes: fc.integer({ min: 500, max: 6000 }),
  storages: fc.uniqueArray(storage, { selector: ({ name }) => name, minLength: 2 }),
  missingPrivileges: fc.constantFrom(
    [],
    [],
    STORAGES.map((name) => `Datastore.Audit on /storage/${name}`),
  ),
});

const vm = fc.record({
  vmId: fc.integer({ min: 100, max: 140 }),
  host: hostName,
  power: fc.constantFrom('running' as const, 'stopped' as const, 'unknown' as const),
  isTemplate: usually(false, true),
  cpus: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  memoryBytes: fc.option(fc.nat(800), { nil: undefined }),
});

const reservation = fc.record({
  vmId: fc.integer({ min: 100, max: 140 }),
  pool: fc.constantFrom('small', 'large'),
  host: hostName,
  cpus: fc.integer({ min: 1, max: 3 }),
  memoryBytes: fc.nat(800),
  storage: storageName,
  pendingDiskBytes: fc.nat(100),
});

const filter = fc.record({
  allow: usually<readonly string[]>([], ['pve1', 'pve2', 'pve5']),
  deny: usually<readonly string[]>([], ['pve2']),
});

const template = fc.record({
  vmId: fc.integer({ min: 9000, max: 9009 }),
  host: hostName,
  storage: storageName,
});

const source: fc.Arbitrary<Source> = fc.oneof(
  fc.constant({ kind: 'netboot' as const }),
  fc.record({
    kind: fc.constant('image' as const),
    storage: storageName,
    presentOn: fc.option(fc.subarray([...HOSTS]), { nil: undefined, freq: 2 }),
  }),
  fc.record({
    kind: fc.constant('template' as const),
    templates: fc.uniqueArray(template, { selector: ({ vmId }) => vmId, maxLength: 5 }),
    clone: fc.constantFrom('full' as const, 'linked' as const),
  }),
);

export const aRandomRegion: fc.Arbitrary<RegionFacts> = fc.record({
  hosts: fc.uniqueArray(host, { selector: ({ name }) => name, minLength: 2 }),
  vms: fc.uniqueArray(vm, { selector: ({ vmId }) => vmId, maxLength: 8 }),
  reservations: fc.uniqueArray(reservation, { selector: ({ vmId }) => vmId, maxLength: 6 }),
  busyHosts: fc.subarray([...HOSTS], { maxLength: 1 }),
  unreadHosts: fc.oneof(
    { weight: 4, arbitrary: fc.constant<string[]>([]) },
    fc.subarray([...HOSTS], { maxLength: 1 }),
  ),
});

export const aRandomRequest: fc.Arbitrary<PlacementRequest> = fc.record({
  pool: fc.constant('small'),
  size: fc.record({
    cpu: fc.integer({ min: 1, max: 4 }),
    memoryBytes: fc.nat(600),
    diskBytes: fc.nat(90),
  }),
  source,
  storages: fc.subarray([...STORAGES], { minLength: 1 }),
  seedStorage: usually<string | undefined>(undefined, 'slow'),
  regionHosts: filter,
  placement: fc.record({
    strategy: fc.constantFrom(...STRATEGIES),
    hosts: filter,
    cpuOvercommit: aFactor,
    memoryOvercommit: aFactor,
    memoryReserveBytes: fc.constantFrom(0, 100),
  }),
  countsStopped: fc.option(fc.boolean(), { nil: undefined }),
  thinStorages: fc.option(fc.subarray([...STORAGES]), { nil: undefined }),
});

function usually<T>(usual: T, rare: T): fc.Arbitrary<T> {
  return fc.oneof(
    { arbitrary: fc.constant(usual), weight: 6 },
    { arbitrary: fc.constant(rare), weight: 1 },
  );
}
