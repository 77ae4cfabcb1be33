// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  aHost,
  aRequest,
  aReservation,
  aStorage,
  aVm,
  facts,
  GIB,
  rules,
} from '../testing/builders.ts';
import { chooseHost } from './choose-host.ts';
import {
  type HostDecision,
  type PlacementRequest,
  REFUSAL_REASONS,
  type Source,
} from './decision.ts';
import type { RegionFacts } from './facts.ts';

function template(host: string, storage = 'local-lvm', vmId = 9000) {
  return { vmId, host, storage };
}

function templateSource(...templates: readonly ReturnType<typeof template>[]): Source {
  return { kind: 'template', templates, clone: 'full' };
}

const full = aVm(100, 'pve1', { memoryBytes: 60 * GIB });

interface Case {
  readonly reason: string;
  readonly request?: Partial<PlacementRequest>;
  readonly region: RegionFacts;
  readonly code: string;
  readonly message: string;
  readonly numbers: Readonly<Record<string, number | string>>;
}

const onlyPve1 = facts([aHost('pve1')]);

const CASES: readonly Case[] = [
  {
    reason: 'HostBusy',
    region: facts([aHost('pve1')], { busyHosts: ['pve1'] }),
    code: 'HOSTS_BUSY',
    message: 'host pve1 has capacity, but already runs its maximum number of concurrent creations',
    numbers: {},
  },
  {
    reason: 'StoragesUnread',
    region: facts([aHost('pve1')], { unreadHosts: ['pve1'] }),
    code: 'VIEW_STALE',
    message: 'host pve1 does not report the free space of its storages',
    numbers: {},
  },
  {
    reason: 'NotEnoughMemory',
    request: { placement: rules({ memoryOvercommit: 1.1, memoryReserveBytes: 6 * GIB }) },
    region: facts([aHost('pve1')], { vms: [full, aVm(101, 'pve1', { memoryBytes: GIB })] }),
    code: 'NO_HOST_FITS',
    message:
      'host pve1: needs 4 GiB of memory, 3.3 GiB free of 64.3 GiB (64 GiB × 1.1 − 6 GiB reserve); 61 GiB allocated to 2 VMs',
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
    message: 'host pve1: needs 2 vCPUs, 1 free of 32 (16 × 2); 31 allocated to 1 VM',
    numbers: { needed: 2, free: 1, limit: 32, allocated: 31, hostCpus: 16, overcommit: 2 },
  },
  {
    reason: 'NotEnoughDisk',
    region: facts([aHost('pve1', { storages: [aStorage({ freeBytes: 60 * GIB })] })], {
      reservations: [aReservation(1250, 'pve1', { pendingDiskBytes: 30 * GIB })],
    }),
    code: 'NO_STORAGE_SPACE',
    message:
      'host pve1: needs 40 GiB on storage local-lvm, 30 GiB free there after 30 GiB reserved for machines being created',
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
    message: 'host pve1 has 4 CPUs and cannot start a VM with 5 vCPUs',
    numbers: { needed: 5, hostCpus: 4 },
  },
  {
    reason: 'TooFewCpus',
    region: facts([aHost('pve1', { cpus: 0, memoryBytes: 0 })]),
    code: 'NO_HOST_FITS',
    message: 'host pve1 reports no CPUs and no memory',
    numbers: { needed: 2, hostCpus: 0 },
  },
  {
    reason: 'PrivilegeMissing',
    region: facts([
      aHost('pve1', {
        cpus: 0,
        memoryBytes: 0,
        missingPrivileges: ['Sys.Audit on /nodes/pve2', 'Sys.Audit on /nodes/pve1'],
      }),
    ]),
    code: 'PERMISSION_MISSING',
    message:
      'host pve1 shows no CPUs and no memory: the Proxmox credentials lack Sys.Audit on /nodes/pve1',
    numbers: { privilege: 'Sys.Audit', path: '/nodes/pve1' },
  },
  {
    reason: 'PrivilegeMissing',
    request: { seedStorage: 'seeds' },
    region: facts([aHost('pve1', { missingPrivileges: ['Datastore.Audit on /storage/seeds'] })]),
    code: 'PERMISSION_MISSING',
    message:
      'host pve1 shows no storage seeds for seeds: the Proxmox credentials lack Datastore.Audit on /storage/seeds',
    numbers: { privilege: 'Datastore.Audit', path: '/storage/seeds' },
  },
  {
    reason: 'TemplateMissing',
    request: { source: templateSource(template('pve3', 'local-lvm', 9003), template('pve2')) },
    region: onlyPve1,
    code: 'TEMPLATE_NOT_FOUND',
    message:
      'host pve1 has no template to clone, neither local nor on shared storage; templates exist: 9000 on pve2 (local-lvm), 9003 on pve3 (local-lvm)',
    numbers: { templates: '9000 on pve2 (local-lvm), 9003 on pve3 (local-lvm)' },
  },
  {
    reason: 'TemplateMissing',
    request: { source: templateSource() },
    region: onlyPve1,
    code: 'TEMPLATE_NOT_FOUND',
    message:
      'host pve1 has no template to clone, neither local nor on shared storage; no other host has one either',
    numbers: { templates: '' },
  },
  {
    reason: 'ImageMissing',
    request: { source: { kind: 'image', storage: 'local', presentOn: ['pve2'] } },
    region: onlyPve1,
    code: 'VOLUME_NOT_FOUND',
    message: 'host pve1 does not have the image on storage local',
    numbers: { storage: 'local' },
  },
  {
    reason: 'StorageRefusesContent',
    request: { source: { kind: 'image', storage: 'local-lvm' } },
    region: onlyPve1,
    code: 'STORAGE_NOT_FOUND',
    message:
      'host pve1 has storage local-lvm for images to import, but it accepts images, rootdir and not import',
    numbers: { storage: 'local-lvm', content: 'import' },
  },
  {
    reason: 'StorageRefusesContent',
    region: facts([aHost('pve1', { storages: [aStorage({ content: [] })] })]),
    code: 'STORAGE_NOT_FOUND',
    message: 'host pve1 has storage local-lvm for disks, but it accepts no content and not images',
    numbers: { storage: 'local-lvm', content: 'images' },
  },
  {
    reason: 'StorageInactive',
    region: facts([aHost('pve1', { storages: [aStorage({ active: false })] })]),
    code: 'STORAGE_NOT_FOUND',
    message: 'host pve1 has storage local-lvm for disks, but it is not active',
    numbers: { storage: 'local-lvm', content: 'images' },
  },
  {
    reason: 'StorageMissing',
    request: { seedStorage: 'seeds' },
    region: onlyPve1,
    code: 'STORAGE_NOT_FOUND',
    message: 'host pve1 has no storage seeds for seeds',
    numbers: { storage: 'seeds', content: 'iso' },
  },
  {
    reason: 'HostOffline',
    region: facts([aHost('pve1', { online: false })]),
    code: 'NO_HOST_FITS',
    message: 'host pve1 is offline',
    numbers: {},
  },
  {
    reason: 'HostDenied',
    request: { regionHosts: { allow: ['pve1'], deny: ['pve1'] } },
    region: onlyPve1,
    code: 'HOST_NOT_FOUND',
    message: 'host pve1 is in hosts.deny of the region',
    numbers: {},
  },
  {
    reason: 'HostNotAllowed',
    request: { placement: rules({ hosts: { allow: ['pve1'], deny: [] } }) },
    region: facts([aHost('pve1', { online: false }), aHost('pve2')]),
    code: 'NO_HOST_FITS',
    message: 'host pve2 is not in hosts.allow of pool small',
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
    message: 'host pve9 is in hosts.allow of the region, but Proxmox has no such host',
    numbers: {},
  },
];

describe('a refused host', () => {
  it.each(CASES)(
    'has reason $reason: $message',
    ({ reason, request, region, code, message, numbers }) => {
      const decision = chooseHost(aRequest(request), region);
      expect(decision).toMatchObject({ placed: false, code });
      expect(refusals(decision)).toContainEqual({
        host: message.split(/[ :]/)[1],
        reason,
        message,
        numbers,
      });
    },
  );

  it('is tested here for every reason', () => {
    expect(new Set(CASES.map(({ reason }) => reason))).toEqual(new Set(REFUSAL_REASONS));
  });

  it('gets a refusal for everything it lacks, not only for the first', () => {
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

  it('gets a refusal for a mistyped storage and for a missing seed storage', () => {
    const request = aRequest({ storages: ['a', 'b'], seedStorage: 'c' });
    expect(
      refusals(chooseHost(request, onlyPve1)).map(({ numbers }) => numbers['storage']),
    ).toEqual(['c', 'a', 'b']);
  });
});

describe('the code of a refusal', () => {
  it('is that of the host nearest to a placement', () => {
    const request = aRequest({ source: templateSource(template('pve1')) });
    const decision = chooseHost(
      request,
      facts([aHost('pve2'), aHost('pve1'), aHost('pve3', { online: false })], { vms: [full] }),
    );
    expect(decision).toMatchObject({ code: 'NO_HOST_FITS' });
    expect(decision.message).toMatch(/^host pve1: needs 4 GiB of memory, 2 GiB free/);
  });

  it('is HOST_NOT_FOUND if the region has no host', () => {
    expect(chooseHost(aRequest(), facts([]))).toEqual({
      placed: false,
      code: 'HOST_NOT_FOUND',
      message: 'the region has no host',
      refusals: [],
    });
  });
});

function refusals(decision: HostDecision) {
  return decision.placed ? decision.others : decision.refusals;
}
