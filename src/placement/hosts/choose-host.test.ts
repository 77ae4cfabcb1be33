// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  aHost,
  aLocal,
  aRequest,
  aReservation,
  aStorage,
  aVm,
  facts,
  GIB,
  rules,
} from '../testing/builders.ts';
import { chooseHost } from './choose-host.ts';
import { type Decision, REFUSAL_REASONS } from './decision.ts';
import type { RegionFacts } from './facts.ts';
import type { PlacementRequest, Source } from './request.ts';

function template(host: string, storage = 'local-lvm', vmId = 9000) {
  return { vmId, host, storage };
}

function from(...templates: readonly ReturnType<typeof template>[]): Source {
  return { kind: 'template', templates, clone: 'full' };
}

const full = aVm(100, 'pve1', { memoryBytes: 60 * GIB });

interface Case {
  readonly reason: string;
  readonly request?: Partial<PlacementRequest>;
  readonly region: RegionFacts;
  readonly code: string;
  readonly sentence: string;
  readonly numbers: Readonly<Record<string, number | string>>;
}

const onlyPve1 = facts([aHost('pve1')]);

const CASES: readonly Case[] = [
  {
    reason: 'HostBusy',
    region: facts([aHost('pve1')], { busyHosts: ['pve1'] }),
    code: 'HOSTS_BUSY',
    sentence: 'host pve1 has room, but as many creations under way as it may have',
    numbers: {},
  },
  {
    reason: 'NotEnoughMemory',
    request: { placement: rules({ memoryOvercommit: 1.1, memoryReserveBytes: 6 * GIB }) },
    region: facts([aHost('pve1')], { vms: [full, aVm(101, 'pve1', { memoryBytes: GIB })] }),
    code: 'NO_HOST_FITS',
    sentence:
      'host pve1: needs 4 GiB of memory, 3.3 GiB free of 64.3 GiB (64 GiB × 1.1 − 6 GiB reserve); 61 GiB given to 2 VMs',
    numbers: {
      neededBytes: 4 * GIB,
      freeBytes: Math.floor(70.4 * GIB) - 67 * GIB,
      limitBytes: Math.floor(70.4 * GIB) - 6 * GIB,
      allocatedBytes: 61 * GIB,
      hostBytes: 64 * GIB,
      reserveBytes: 6 * GIB,
      overcommit: 1.1,
    },
  },
  {
    reason: 'NotEnoughCpu',
    region: facts([aHost('pve1')], { vms: [aVm(100, 'pve1', { cpus: 31 })] }),
    code: 'NO_HOST_FITS',
    sentence: 'host pve1: needs 2 vCPUs, 1 free of 32 (16 × 2); 31 given to 1 VM',
    numbers: { needed: 2, free: 1, limit: 32, allocated: 31, hostCpus: 16, overcommit: 2 },
  },
  {
    reason: 'NotEnoughDisk',
    region: facts([aHost('pve1', { storages: [aStorage({ freeBytes: 60 * GIB })] })], {
      reservations: [aReservation(1250, 'pve1', { pendingDiskBytes: 30 * GIB })],
    }),
    code: 'NO_STORAGE_SPACE',
    sentence:
      'host pve1: needs 40 GiB on storage local-lvm, 30 GiB free there after 30 GiB for machines in the making',
    numbers: {
      neededBytes: 40 * GIB,
      freeBytes: 30 * GIB,
      pendingBytes: 30 * GIB,
      storage: 'local-lvm',
    },
  },
  {
    reason: 'TooFewCpus',
    request: { size: { cpu: 5, memoryBytes: GIB, diskBytes: GIB } },
    region: facts([aHost('pve1', { cpus: 4 })]),
    code: 'NO_HOST_FITS',
    sentence: 'host pve1 has 4 CPUs and starts no VM with 5 vCPUs',
    numbers: { needed: 5, hostCpus: 4 },
  },
  {
    reason: 'TemplateMissing',
    request: { source: from(template('pve3', 'local-lvm', 9003), template('pve2')) },
    region: onlyPve1,
    code: 'TEMPLATE_NOT_FOUND',
    sentence:
      'host pve1 has no template to clone, neither its own nor on shared storage; there is 9000 on pve2 (local-lvm), 9003 on pve3 (local-lvm)',
    numbers: { templates: '9000 on pve2 (local-lvm), 9003 on pve3 (local-lvm)' },
  },
  {
    reason: 'TemplateMissing',
    request: { source: from() },
    region: onlyPve1,
    code: 'TEMPLATE_NOT_FOUND',
    sentence:
      'host pve1 has no template to clone, neither its own nor on shared storage; nor has any other',
    numbers: { templates: '' },
  },
  {
    reason: 'ImageMissing',
    request: { source: { kind: 'image', storage: 'local', presentOn: ['pve2'] } },
    region: onlyPve1,
    code: 'VOLUME_NOT_FOUND',
    sentence: 'host pve1 does not have the image on storage local',
    numbers: { storage: 'local' },
  },
  {
    reason: 'StorageRefusesContent',
    request: { source: { kind: 'image', storage: 'local-lvm' } },
    region: onlyPve1,
    code: 'STORAGE_NOT_FOUND',
    sentence:
      'host pve1 has storage local-lvm for images to import, but that takes images, rootdir and not import',
    numbers: { storage: 'local-lvm', content: 'import' },
  },
  {
    reason: 'StorageRefusesContent',
    region: facts([aHost('pve1', { storages: [aStorage({ content: [] })] })]),
    code: 'STORAGE_NOT_FOUND',
    sentence: 'host pve1 has storage local-lvm for disks, but that takes nothing and not images',
    numbers: { storage: 'local-lvm', content: 'images' },
  },
  {
    reason: 'StorageInactive',
    region: facts([aHost('pve1', { storages: [aStorage({ active: false })] })]),
    code: 'STORAGE_NOT_FOUND',
    sentence: 'host pve1 has storage local-lvm for disks, but it is not active',
    numbers: { storage: 'local-lvm', content: 'images' },
  },
  {
    reason: 'StorageMissing',
    request: { seedStorage: 'seeds' },
    region: onlyPve1,
    code: 'STORAGE_NOT_FOUND',
    sentence: 'host pve1 has no storage seeds for seeds',
    numbers: { storage: 'seeds', content: 'iso' },
  },
  {
    reason: 'HostOffline',
    region: facts([aHost('pve1', { online: false })]),
    code: 'NO_HOST_FITS',
    sentence: 'host pve1 is offline',
    numbers: {},
  },
  {
    reason: 'HostDenied',
    request: { regionHosts: { allow: ['pve1'], deny: ['pve1'] } },
    region: onlyPve1,
    code: 'HOST_NOT_FOUND',
    sentence: 'host pve1 is in hosts.deny of the region',
    numbers: {},
  },
  {
    reason: 'HostNotAllowed',
    request: { placement: rules({ hosts: { allow: ['pve1'], deny: [] } }) },
    region: facts([aHost('pve1', { online: false }), aHost('pve2')]),
    code: 'NO_HOST_FITS',
    sentence: 'host pve2 is not in hosts.allow of pool small',
    numbers: {},
  },
  {
    reason: 'HostUnknown',
    request: {
      regionHosts: { allow: ['pve9'], deny: [] },
      placement: rules({ hosts: { allow: ['pve9'], deny: [] } }),
    },
    region: facts([]),
    code: 'HOST_NOT_FOUND',
    sentence: 'host pve9 is in hosts.allow of the region, but Proxmox has no such host',
    numbers: {},
  },
];

describe('a refused host', () => {
  it.each(CASES)('$reason: $sentence', ({ reason, request, region, code, sentence, numbers }) => {
    const decision = chooseHost(aRequest(request), region);
    expect(decision).toMatchObject({ placed: false, code });
    expect(refusals(decision)).toContainEqual({
      host: sentence.split(/[ :]/)[1],
      reason,
      sentence,
      numbers,
    });
  });

  it('has every reason in this table', () => {
    expect(new Set(CASES.map(({ reason }) => reason))).toEqual(new Set(REFUSAL_REASONS));
  });

  it('is told everything it lacks, not only the first', () => {
    const poor = aHost('pve1', {
      cpus: 2,
      memoryBytes: 4 * GIB,
      storages: [aStorage({ freeBytes: 0 })],
    });
    const region = facts([poor], { vms: [aVm(100, 'pve1', { cpus: 4 })] });
    expect(refusals(chooseHost(aRequest(), region)).map(({ reason }) => reason)).toEqual([
      'NotEnoughMemory',
      'NotEnoughCpu',
      'NotEnoughDisk',
    ]);
  });

  it('is told of a mistyped storage beside a missing seed storage', () => {
    const request = aRequest({ storages: ['a', 'b'], seedStorage: 'c' });
    expect(
      refusals(chooseHost(request, onlyPve1)).map(({ numbers }) => numbers['storage']),
    ).toEqual(['c', 'a', 'b']);
  });
});

describe('the code of a refusal', () => {
  it('is that of the host nearest to a placement', () => {
    const request = aRequest({ source: from(template('pve1')) });
    const decision = chooseHost(
      request,
      facts([aHost('pve2'), aHost('pve1'), aHost('pve3', { online: false })], { vms: [full] }),
    );
    expect(decision).toMatchObject({ code: 'NO_HOST_FITS' });
    expect(decision.sentence).toMatch(/^host pve1: needs 4 GiB of memory, 2 GiB free/);
  });

  it('is a missing host where there is none', () => {
    expect(chooseHost(aRequest(), facts([]))).toEqual({
      placed: false,
      code: 'HOST_NOT_FOUND',
      sentence: 'the region has no host',
      refusals: [],
    });
  });
});

describe('a placement', () => {
  it('names host and storage, and says of the others why not', () => {
    const region = facts([aHost('pve3', { online: false }), aHost('pve2'), aHost('pve1')], {
      vms: [aVm(1250, 'pve1')],
      reservations: [aReservation(1250, 'pve1', { pendingDiskBytes: 0 })],
    });
    expect(chooseHost(aRequest(), region)).toEqual({
      placed: true,
      host: 'pve2',
      storage: 'local-lvm',
      sentence:
        "host pve2, storage local-lvm, by 'spread': 0 machines of the pool, 58 GiB and 30 vCPUs left after it",
      numbers: {
        memoryFreeBytes: 58 * GIB,
        cpusFree: 30,
        diskFreeBytes: 460 * GIB,
        vms: 0,
        poolMachines: 0,
      },
      others: [
        {
          host: 'pve1',
          reason: 'AnotherPreferred',
          sentence:
            "host pve1 fits too (1 machine of the pool, 54 GiB and 28 vCPUs left after it), but 'spread' prefers pve2 (0 machines of the pool, 58 GiB and 30 vCPUs left after it)",
          numbers: {
            memoryFreeBytes: 54 * GIB,
            cpusFree: 28,
            diskFreeBytes: 460 * GIB,
            vms: 1,
            poolMachines: 1,
          },
        },
        { host: 'pve3', reason: 'HostOffline', sentence: 'host pve3 is offline', numbers: {} },
      ],
    });
  });

  it('passes over a busy host as long as another fits', () => {
    const region = facts([aHost('pve1'), aHost('pve2')], { busyHosts: ['pve1'] });
    const decision = chooseHost(aRequest(), region);
    expect(decision).toMatchObject({
      placed: true,
      host: 'pve2',
      others: [{ reason: 'HostBusy' }],
    });
  });

  it('imports an image that is there, or that will be fetched', () => {
    for (const presentOn of [undefined, ['pve1']]) {
      const source: Source = { kind: 'image', storage: 'local', presentOn };
      expect(chooseHost(aRequest({ source, seedStorage: 'local' }), onlyPve1).placed).toBe(true);
    }
  });
});

describe('a template', () => {
  const nfs = aStorage({ name: 'nfs', shared: true });
  const pve1 = aHost('pve1', { storages: [aStorage(), nfs] });
  const pve2 = aHost('pve2', { storages: [aStorage(), nfs] });
  const request = (source: Source) =>
    aRequest({ source, placement: rules({ hosts: { allow: ['pve1'], deny: [] } }) });

  it('of the host itself is taken before one on shared storage', () => {
    const source = from(template('pve2', 'nfs', 9001), template('pve1', 'local-lvm', 9005));
    const decision = chooseHost(request(source), facts([pve1, pve2]));
    expect(decision).toMatchObject({ template: { vmId: 9005, host: 'pve1' } });
  });

  it('on shared storage serves every host, the lowest VM id first', () => {
    const source = from(template('pve2', 'nfs', 9002), template('pve2', 'nfs', 9001));
    const decision = chooseHost(request(source), facts([pve1, pve2]));
    expect(decision).toMatchObject({
      host: 'pve1',
      storage: 'local-lvm',
      template: { vmId: 9001, host: 'pve2' },
    });
  });

  it.each([
    ['its host is offline', pve1, { ...pve2, online: false }],
    [
      'the shared storage is down',
      { ...pve1, storages: [aStorage(), { ...nfs, active: false }] },
      pve2,
    ],
    [
      'the storage is not shared',
      { ...pve1, storages: [aStorage(), { ...nfs, shared: false }] },
      pve2,
    ],
  ])('serves no other host when %s', (_, one, other) => {
    const decision = chooseHost(request(from(template('pve2', 'nfs'))), facts([one, other]));
    expect(decision).toMatchObject({ placed: false, code: 'TEMPLATE_NOT_FOUND' });
  });

  it('binds linked clones to its own storage', () => {
    const linked = (storage: string): Source => ({
      kind: 'template',
      clone: 'linked',
      templates: [template('pve1', storage)],
    });
    expect(chooseHost(request(linked('nfs')), facts([pve1]))).toMatchObject({ storage: 'nfs' });
    expect(chooseHost(request(linked('gone')), facts([pve1]))).toMatchObject({
      code: 'STORAGE_NOT_FOUND',
    });
  });
});

describe('storages', () => {
  const wanted = aRequest({ storages: ['slow', 'fast', 'full'] });
  const storage = (name: string, free: number) => aStorage({ name, freeBytes: free * GIB });

  it.each([
    ['the one with most room', [storage('slow', 90), storage('fast', 100)], 'fast'],
    ['the first by name of equals', [storage('slow', 90), storage('fast', 90)], 'fast'],
    ['whatever the order', [storage('fast', 90), storage('slow', 90)], 'fast'],
    [
      'the one that works',
      [storage('slow', 90), { ...storage('fast', 99), active: false }],
      'slow',
    ],
  ])('%s is taken', (_, storages, expected) => {
    const decision = chooseHost(wanted, facts([aHost('pve1', { storages })]));
    expect(decision).toMatchObject({ placed: true, storage: expected });
  });

  it('that are shared have one account, at the lowest reading', () => {
    const nfs = (free: number) => aStorage({ name: 'nfs', shared: true, freeBytes: free * GIB });
    const region = facts(
      [aHost('pve1', { storages: [nfs(100)] }), aHost('pve2', { storages: [nfs(90)] })],
      {
        reservations: [aReservation(1250, 'pve1', { storage: 'nfs', pendingDiskBytes: 51 * GIB })],
      },
    );
    const decision = chooseHost(aRequest({ storages: ['nfs'] }), region);
    expect(decision).toMatchObject({ code: 'NO_STORAGE_SPACE' });
    expect(refusals(decision).map(({ numbers }) => numbers['freeBytes'])).toEqual([
      39 * GIB,
      39 * GIB,
    ]);
  });

  it('that are local have one per host', () => {
    const tight = [aStorage({ freeBytes: 50 * GIB })];
    const region = facts([aHost('pve1', { storages: tight }), aHost('pve2', { storages: tight })], {
      reservations: [aReservation(1250, 'pve2')],
    });
    expect(chooseHost(aRequest(), region)).toMatchObject({ placed: true, host: 'pve1' });
  });

  it('are read on hosts that are online only', () => {
    const nfs = (free: number) => aStorage({ name: 'nfs', shared: true, freeBytes: free * GIB });
    const region = facts([
      aHost('pve1', { storages: [nfs(100)] }),
      aHost('pve2', { storages: [nfs(0)], online: false }),
    ]);
    expect(chooseHost(aRequest({ storages: ['nfs'] }), region).placed).toBe(true);
  });

  it('that are thin count by their total, unless they have run full', () => {
    const thin = (free: number) =>
      chooseHost(
        aRequest({ thinStorages: ['local-lvm'] }),
        facts(
          [aHost('pve1', { storages: [aStorage({ freeBytes: free, totalBytes: 100 * GIB })] })],
          {
            reservations: [aReservation(1250, 'pve1', { pendingDiskBytes: 50 * GIB })],
          },
        ),
      );
    expect(thin(GIB)).toMatchObject({ placed: true, numbers: { diskFreeBytes: 10 * GIB } });
    expect(thin(0)).toMatchObject({ code: 'NO_STORAGE_SPACE' });
  });

  it('for images and disks may be the same', () => {
    const one = aLocal({ name: 'one', content: ['import', 'images', 'iso'] });
    const request = aRequest({
      storages: ['one'],
      seedStorage: 'one',
      source: { kind: 'image', storage: 'one' },
    });
    expect(chooseHost(request, facts([aHost('pve1', { storages: [one] })])).placed).toBe(true);
  });
});

function refusals(decision: Decision) {
  return decision.placed ? decision.others : decision.refusals;
}
