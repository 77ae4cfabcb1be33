// SPDX-License-Identifier: Apache-2.0
// A call that is never answered must delay nothing but what it is about.
import { describe, expect, it } from 'vitest';
import { formatMarker } from '../../model/marker.ts';
import { Cancelled } from '../../ports/errors.ts';
import { MemoryHypervisor } from '../../ports/fakes/memory-hypervisor.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import type { Hypervisor, VmRef } from '../../ports/hypervisor.ts';
import { createFleet, type Fleet } from '../fleet.ts';
import {
  aHost,
  aPool,
  aRegion,
  CLUSTER,
  REGION,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  REASON,
  type TestFleet,
} from '../testing/test-fleet.ts';

/** Shorter than the deadline of a call. */
const DRIVE_SECONDS = 30;

/** Hypervisor whose calls hang, until they are cancelled, where `isHung` says so. */
function hanging(
  hypervisor: MemoryHypervisor,
  isHung: (call: string, first: Partial<VmRef> & string) => boolean,
): Hypervisor {
  return new Proxy<Hypervisor>(hypervisor, {
    get: (target, name, receiver) => {
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== 'function' || name === 'volumeId') return member;
      return (...args: unknown[]) => {
        if (!isHung(String(name), args[0] as never)) return member.apply(target, args) as unknown;
        return new Promise((_, reject) => {
          const { signal } = (args.at(-1) ?? {}) as { readonly signal?: AbortSignal };
          signal?.addEventListener('abort', () =>
            reject(new Cancelled('CANCELLED', 'the call was cancelled')),
          );
        });
      };
    },
  });
}

/** Requests `size` machines after the first pass, drives for some virtual seconds, then cancels everything. */
async function scaleAndDrive(fleet: Fleet, { clock }: TestFleet, size: number): Promise<void> {
  const stop = new AbortController();
  const driving = fleet.runDriver({ signal: stop.signal });
  await clock.advance(3_000);
  await fleet.scaleTo('workers', size, REASON);
  for (let second = 0; second < DRIVE_SECONDS; second += 1) await clock.advance(1_000);
  stop.abort();
  await clock.advance(1_000);
  await driving;
}

function putVm({ hypervisor }: TestFleet, vmId: number, options: Record<string, string>): void {
  hypervisor.state.vms.set(vmId, {
    vmId,
    host: 'pve1',
    options: new Map(Object.entries(options)),
    revision: 1,
    startedAt: undefined,
  });
}

const isOn =
  (host: string) =>
  (_call: string, first: Partial<VmRef> & string): boolean =>
    first === host || first?.host === host;

/** Two machines on the hosts that answer, within a time in which no call to the third was given up. */
async function expectTwoReady(testFleet: TestFleet, hypervisor: Hypervisor): Promise<void> {
  const region = aRegion({ hosts: { allow: ['pve2', 'pve3'], deny: [] } });
  const settings = someSettings([aPool()], { regions: { [REGION]: region } });
  const fleet = aFleet({ ...testFleet, hypervisor, settings, seed: 2 });
  await scaleAndDrive(fleet, testFleet, 2);
  const machines = await machinesIn(testFleet.store);
  expect(machines.map(({ phase }) => phase)).toEqual(['ready', 'ready']);
}

describe('a host that does not answer', () => {
  it('delays no machine on another host while a VM on it may be ours', async () => {
    const testFleet = aTestFleet();
    for (const vmId of [1_260, 1_261, 1_262]) putVm(testFleet, vmId, { name: `vm-${vmId}` });
    await expectTwoReady(testFleet, hanging(testFleet.hypervisor, isOn('pve1')));
  });

  it('delays no machine on another host while it has a template of the pool', async () => {
    const testFleet = aTestFleet();
    const region = aRegion({ hosts: { allow: ['pve2', 'pve3'], deny: [] } });
    const settings = someSettings([aPool({ source: templateSource() })], {
      regions: { [REGION]: region },
    });
    const hypervisor = hanging(testFleet.hypervisor, isOn('pve1'));
    const fleet = aFleet({ ...testFleet, hypervisor, settings, seed: 2 });
    await scaleAndDrive(fleet, testFleet, 1);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
  });

  it('delays no machine on another host while its seeds are listed', async () => {
    const testFleet = aTestFleet();
    const isSeedList = (call: string, first: Partial<VmRef> & string) =>
      call === 'volumes' && isOn('pve1')(call, first);
    await expectTwoReady(testFleet, hanging(testFleet.hypervisor, isSeedList));
  });

  it('delays no machine on another host while it takes an upload, and ends none', async () => {
    const testFleet = aTestFleet();
    const isUpload = (call: string, first: Partial<VmRef> & string) =>
      call === 'uploadIso' && isOn('pve1')(call, first);
    const hypervisor = hanging(testFleet.hypervisor, isUpload);
    const fleet = aFleet({ ...testFleet, hypervisor, settings: someSettings([aPool()]), seed: 2 });
    await scaleAndDrive(fleet, testFleet, 3);
    const phases = (await machinesIn(testFleet.store)).map(
      ({ phase, placement }) => `${placement?.host} ${phase}`,
    );
    expect(phases.toSorted()).toEqual(['pve1 configuring', 'pve2 ready', 'pve3 ready']);
  });

  it('delays no other machine while an orphaned VM on it is being stopped', async () => {
    const testFleet = aTestFleet();
    const before = aFleet({ ...testFleet, settings: someSettings([aPool()]), seed: 1 });
    await scaleAndDrive(before, testFleet, 1);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine?.phase).toBe('ready');
    const marker = formatMarker({
      cluster: CLUSTER,
      pool: 'workers',
      machine: machine!.id,
      vmId: 1_290,
      createdAtSeconds: 1,
      addresses: [],
    });
    putVm(testFleet, 1_290, {
      name: 'late',
      description: marker,
      smbios1: `uuid=${machine!.id}`,
      scsi0: 'local-lvm:vm-1290-disk-0,size=3072M',
    });
    const orphan = testFleet.hypervisor.state.vms.get(1_290)!;
    testFleet.hypervisor.state.vms.set(1_290, { ...orphan, startedAt: 0 });
    const isStop = (call: string, first: Partial<VmRef> & string) =>
      call === 'stopVm' && first.vmId === 1_290;
    await expectTwoReady(testFleet, hanging(testFleet.hypervisor, isStop));
    expect(existingResources(testFleet.hypervisor).vms).toContain(1_290);
  });
});

describe('a region that does not answer', () => {
  it('delays no machine of another region', async () => {
    const testFleet = aTestFleet();
    const { clock, store, hypervisor } = testFleet;
    const other = new MemoryHypervisor({
      region: 'other',
      clock,
      random: new SeededRandom(9),
      hosts: [aHost('pve9')],
      taskMs: 1_500,
      bootMs: 3_000,
    });
    const regions = {
      [REGION]: aRegion(),
      other: aRegion({ name: 'other', hosts: { allow: ['pve9'], deny: [] } }),
    };
    const fleet = createFleet({
      clock,
      store,
      hypervisors: new Map<string, Hypervisor>([
        ['other', hanging(other, () => true)],
        [REGION, hypervisor],
      ]),
      random: new SeededRandom(3),
      settings: someSettings([aPool()], { regions }),
    });
    await scaleAndDrive(fleet, testFleet, 2);
    const machines = await machinesIn(store);
    expect(machines.map(({ phase }) => phase)).toEqual(['ready', 'ready']);
  });
});
