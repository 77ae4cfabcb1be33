// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Host } from '../../model/host.ts';
import { Unreachable } from '../../ports/errors.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { MemoryHypervisor } from '../../ports/fakes/memory-hypervisor.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { aHost } from '../testing/settings.ts';
import { readRegionViews } from './region-views.ts';
import { type ComparedRegions, withoutSameRegions } from './same-proxmox.ts';

const UUID = '0a1b2c3d-7777-4000-8000-000000000000';

/** Two regions; `certificates` are the fingerprints of their hosts. */
function twoRegions(certificates: readonly [Record<string, string>, Record<string, string>]) {
  const clock = new VirtualClock();
  const [one, other] = ['one', 'other'].map((region, at) => {
    const hosts: readonly Host[] = [aHost('pve'), aHost(`only-in-${region}`)];
    const hypervisor = new MemoryHypervisor({ region, clock, random: new SeededRandom(at), hosts });
    hypervisor.hostFingerprints = () => Promise.resolve(new Map(Object.entries(certificates[at]!)));
    return hypervisor;
  }) as [MemoryHypervisor, MemoryHypervisor];
  const regions = { clock, hypervisors: new Map([one, other].map((each) => [each.region, each])) };
  const compared: ComparedRegions = new Map();
  const check = async () => {
    const read = await readRegionViews(regions);
    const { views, stale } = await withoutSameRegions(regions, read, compared);
    return { used: [...views.keys()], stale };
  };
  return { clock, one, other, regions, compared, check };
}

function putVm({ state }: MemoryHypervisor, vmId: number, options: Record<string, string>): void {
  const vm = { vmId, host: 'pve', revision: 1, startedAt: undefined };
  state.vms.set(vmId, { ...vm, options: new Map(Object.entries(options)) });
}

describe('withoutSameRegions', () => {
  it('refuses both regions if a shared host has the same certificate', async () => {
    const { check } = twoRegions([{ pve: 'aa' }, { pve: 'aa' }]);
    const { used, stale } = await check();
    expect(used).toEqual([]);
    expect(Object.keys(stale)).toEqual(['one', 'other']);
    expect(stale['one']).toContain('host pve has the same certificate in both');
  });

  it('uses both regions if the certificates differ, whatever VMs they have, and compares once', async () => {
    const { one, other, check } = twoRegions([{ pve: 'aa' }, { pve: 'bb' }]);
    for (const each of [one, other]) putVm(each, 100, { name: 'same', smbios1: `uuid=${UUID}` });
    let reads = 0;
    const fingerprints = one.hostFingerprints.bind(one);
    one.hostFingerprints = () => {
      reads += 1;
      return fingerprints();
    };
    expect(await check()).toEqual({ used: ['one', 'other'], stale: {} });
    expect(await check()).toEqual({ used: ['one', 'other'], stale: {} });
    expect(reads).toBe(1);
  });

  it('compares nothing if no host has the same name', async () => {
    const { one, other, check } = twoRegions([{ pve: 'aa' }, { pve: 'aa' }]);
    other.state.hosts.splice(0, 1);
    expect((await check()).used).toEqual(['one', 'other']);
    expect(one.calls.map(({ method }) => method)).toEqual(['view']);
  });

  it.each([
    ['the same id, name and SMBIOS UUID', { name: 'same', smbios1: `uuid=${UUID}` }, false],
    ['another SMBIOS UUID', { name: 'same', smbios1: 'uuid=another' }, true],
    ['another name', { name: 'another', smbios1: `uuid=${UUID}` }, true],
    ['no SMBIOS UUID', { name: 'same' }, true],
  ])(
    'without certificates of both, VMs decide: one with %s',
    async (_what, options: Record<string, string>, areUsed) => {
      const { one, other, check } = twoRegions([{ pve: 'aa' }, {}]);
      const { smbios1, ...unidentified } = { name: 'same', smbios1: `uuid=${UUID}` };
      putVm(
        one,
        100,
        options['smbios1'] === undefined ? unidentified : { ...unidentified, smbios1 },
      );
      putVm(other, 100, options);
      const { used, stale } = await check();
      expect(used).toEqual(areUsed ? ['one', 'other'] : []);
      if (!areUsed) expect(stale['other']).toContain('VM 100 has the same SMBIOS UUID in both');
    },
  );

  it('without certificates, VMs that both regions show later decide too', async () => {
    const { one, other, check } = twoRegions([{}, {}]);
    expect((await check()).used).toEqual(['one', 'other']);
    for (const each of [one, other]) putVm(each, 100, { name: 'a', smbios1: 'uuid=another' });
    putVm(one, 100, { name: 'a', smbios1: `uuid=${UUID}` });
    expect((await check()).used).toEqual(['one', 'other']);
    const reads = one.calls.filter(({ method }) => method === 'vmConfig').length;
    await check();
    expect(one.calls.filter(({ method }) => method === 'vmConfig')).toHaveLength(reads);
    for (const each of [one, other]) putVm(each, 101, { name: 'b', smbios1: `uuid=${UUID}` });
    expect((await check()).used).toEqual([]);
  });

  it('VMs without a name prove nothing and are not read', async () => {
    const { one, other, check } = twoRegions([{}, {}]);
    for (const each of [one, other]) putVm(each, 100, { smbios1: `uuid=${UUID}` });
    expect((await check()).used).toEqual(['one', 'other']);
    expect(one.calls.map(({ method }) => method)).not.toContain('vmConfig');
  });

  it('uses neither region while it cannot be determined, and compares again', async () => {
    const { one, check } = twoRegions([{ pve: 'aa' }, { pve: 'bb' }]);
    const fingerprints = one.hostFingerprints.bind(one);
    one.hostFingerprints = () => Promise.reject(new Unreachable('PVE_UNREACHABLE', 'no route'));
    const { used, stale } = await check();
    expect(used).toEqual([]);
    expect(stale['other']).toContain('cannot be determined');
    expect(stale['other']).toContain('no route');
    one.hostFingerprints = fingerprints;
    expect((await check()).used).toEqual(['one', 'other']);
  });

  it('uses neither region while a comparison has not ended, and waits only a moment for it', async () => {
    const { clock, one, check } = twoRegions([{ pve: 'aa' }, { pve: 'bb' }]);
    let answer = () => {};
    one.hostFingerprints = () =>
      new Promise((resolve) => {
        answer = () => resolve(new Map([['pve', 'aa']]));
      });
    const { used, stale } = await advanceUntilSettled(clock, check());
    expect(used).toEqual([]);
    expect(stale['one']).toContain('not known yet');
    answer();
    expect((await advanceUntilSettled(clock, check())).used).toEqual(['one', 'other']);
  });
});
