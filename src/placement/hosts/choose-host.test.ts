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
import type { HostDecision, Source } from './decision.ts';

function template(host: string, storage = 'local-lvm', vmId = 9000) {
  return { vmId, host, storage };
}

function templateSource(...templates: readonly ReturnType<typeof template>[]): Source {
  return { kind: 'template', templates, clone: 'full' };
}

const onlyPve1 = facts([aHost('pve1')]);

describe('chooseHost', () => {
  it('returns host and storage, and the reason for every other host', () => {
    const region = facts([aHost('pve3', { online: false }), aHost('pve2'), aHost('pve1')], {
      vms: [aVm(1250, 'pve1')],
      reservations: [aReservation(1250, 'pve1', { pendingDiskBytes: 0 })],
    });
    expect(chooseHost(aRequest(), region)).toEqual({
      placed: true,
      host: 'pve2',
      storage: 'local-lvm',
      message:
        "host pve2, storage local-lvm, by strategy 'spread': 0 machines of the pool, 58 GiB and 30 vCPUs left after placement",
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
          message:
            "host pve1 fits too (1 machine of the pool, 54 GiB and 28 vCPUs left after placement), but strategy 'spread' prefers pve2 (0 machines of the pool, 58 GiB and 30 vCPUs left after placement)",
          numbers: {
            memoryFreeBytes: 54 * GIB,
            cpusFree: 28,
            diskFreeBytes: 460 * GIB,
            vms: 1,
            poolMachines: 1,
          },
        },
        { host: 'pve3', reason: 'HostOffline', message: 'host pve3 is offline', numbers: {} },
      ],
    });
  });

  it('skips a busy host if another one fits', () => {
    const region = facts([aHost('pve1'), aHost('pve2')], { busyHosts: ['pve1'] });
    const decision = chooseHost(aRequest(), region);
    expect(decision).toMatchObject({
      placed: true,
      host: 'pve2',
      others: [{ reason: 'HostBusy' }],
    });
  });

  it('imports an image that is present or will be downloaded', () => {
    for (const presentOn of [undefined, ['pve1']]) {
      const source: Source = { kind: 'image', storage: 'local', presentOn };
      expect(chooseHost(aRequest({ source, seedStorage: 'local' }), onlyPve1).placed).toBe(true);
    }
  });
});

describe('chooseHost with templates', () => {
  const nfs = aStorage({ name: 'nfs', shared: true });
  const pve1 = aHost('pve1', { storages: [aStorage(), nfs] });
  const pve2 = aHost('pve2', { storages: [aStorage(), nfs] });
  const request = (source: Source) =>
    aRequest({ source, placement: rules({ hosts: { allow: ['pve1'], deny: [] } }) });

  it('prefers a template on the host itself to one on shared storage', () => {
    const source = templateSource(
      template('pve2', 'nfs', 9001),
      template('pve1', 'local-lvm', 9005),
    );
    const decision = chooseHost(request(source), facts([pve1, pve2]));
    expect(decision).toMatchObject({ template: { vmId: 9005, host: 'pve1' } });
  });

  it('uses a template on shared storage for every host, lowest VM id first', () => {
    const source = templateSource(template('pve2', 'nfs', 9002), template('pve2', 'nfs', 9001));
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
      'the shared storage is inactive',
      { ...pve1, storages: [aStorage(), { ...nfs, active: false }] },
      pve2,
    ],
    [
      'the storage is not shared',
      { ...pve1, storages: [aStorage(), { ...nfs, shared: false }] },
      pve2,
    ],
  ])('does not use a template for another host if %s', (_, one, other) => {
    const decision = chooseHost(
      request(templateSource(template('pve2', 'nfs'))),
      facts([one, other]),
    );
    expect(decision).toMatchObject({ placed: false, code: 'TEMPLATE_NOT_FOUND' });
  });

  it('keeps a linked clone on the storage of its template', () => {
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

describe('chooseHost with several storages', () => {
  const wanted = aRequest({ storages: ['slow', 'fast', 'full'] });
  const storage = (name: string, free: number) => aStorage({ name, freeBytes: free * GIB });

  it.each([
    ['the storage with the most free space', [storage('slow', 90), storage('fast', 100)], 'fast'],
    ['the first by name if several are equal', [storage('slow', 90), storage('fast', 90)], 'fast'],
    ['the same storage whatever the order', [storage('fast', 90), storage('slow', 90)], 'fast'],
    [
      'the active storage',
      [storage('slow', 90), { ...storage('fast', 99), active: false }],
      'slow',
    ],
  ])('chooses %s', (_, storages, expected) => {
    const decision = chooseHost(wanted, facts([aHost('pve1', { storages })]));
    expect(decision).toMatchObject({ placed: true, storage: expected });
  });

  it('counts a shared storage once, at its lowest reported free space', () => {
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

  it('counts a local storage per host', () => {
    const tight = [aStorage({ freeBytes: 50 * GIB })];
    const region = facts([aHost('pve1', { storages: tight }), aHost('pve2', { storages: tight })], {
      reservations: [aReservation(1250, 'pve2')],
    });
    expect(chooseHost(aRequest(), region)).toMatchObject({ placed: true, host: 'pve1' });
  });

  it('reads storages of online hosts only', () => {
    const nfs = (free: number) => aStorage({ name: 'nfs', shared: true, freeBytes: free * GIB });
    const region = facts([
      aHost('pve1', { storages: [nfs(100)] }),
      aHost('pve2', { storages: [nfs(0)], online: false }),
    ]);
    expect(chooseHost(aRequest({ storages: ['nfs'] }), region).placed).toBe(true);
  });

  it('limits a thin storage by its total size, unless it is full', () => {
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

  it('limits a shared thin storage by its lowest reported total size', () => {
    const nfs = (total: number) =>
      aStorage({ name: 'nfs', shared: true, freeBytes: GIB, totalBytes: total * GIB });
    const region = facts(
      [aHost('pve1', { storages: [nfs(100)] }), aHost('pve2', { storages: [nfs(60)] })],
      {
        reservations: [aReservation(1250, 'pve1', { storage: 'nfs', pendingDiskBytes: 50 * GIB })],
      },
    );
    const decision = chooseHost(aRequest({ storages: ['nfs'], thinStorages: ['nfs'] }), region);
    expect(refusals(decision).map(({ numbers }) => numbers['freeBytes'])).toEqual([
      10 * GIB,
      10 * GIB,
    ]);
  });

  it('accepts the same storage for images and disks', () => {
    const one = aLocal({ name: 'one', content: ['import', 'images', 'iso'] });
    const request = aRequest({
      storages: ['one'],
      seedStorage: 'one',
      source: { kind: 'image', storage: 'one' },
    });
    expect(chooseHost(request, facts([aHost('pve1', { storages: [one] })])).placed).toBe(true);
  });
});

function refusals(decision: HostDecision) {
  return decision.placed ? decision.others : decision.refusals;
}
