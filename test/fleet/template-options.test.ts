// SPDX-License-Identifier: Apache-2.0
// A clone inherits every option of its template. Options that only suit a template must not stay on a machine.
import { describe, expect, it } from 'vitest';
import { setVmOptions } from '../proxmox/simulated-region.ts';
import {
  createProcess,
  createSite,
  REASON,
  readInventory,
  readMachines,
  reconcileUntilIdle,
  type Site,
} from './simulated-site.ts';

const TEMPLATES = [9_000, 9_001, 9_002];
const EMPTY_INVENTORY = { vms: [], machines: [], isos: [], disks: [] };

function createSiteWith(options: Readonly<Record<string, string>>): Site {
  const site = createSite('full clone');
  for (const id of TEMPLATES) {
    for (const [name, value] of Object.entries(options)) {
      site.sim.externalChanges.setOption(id, name, value);
    }
  }
  return site;
}

async function scaleToZero(site: Site, fleet: ReturnType<typeof createProcess>): Promise<void> {
  await fleet.scaleTo('workers', 0, REASON);
  await reconcileUntilIdle(site, fleet, { maxPasses: 200 });
  expect(readInventory(site)).toEqual(EMPTY_INVENTORY);
}

describe('a protected template', () => {
  it('gives machines without protection', async () => {
    const site = createSiteWith({ protection: '1' });
    const fleet = createProcess(site);
    await fleet.scaleTo('workers', 1, REASON);
    await reconcileUntilIdle(site, fleet);
    expect(await readMachines(site.store)).toMatchObject([{ phase: 'ready' }]);
    await scaleToZero(site, fleet);
    const left = site.sim.inspect().vms.filter(({ config }) => config['protection'] === '1');
    expect(left.map(({ id }) => id)).toEqual(TEMPLATES);
  });

  it('leaves nothing behind when a machine fails before it is configured', async () => {
    const site = createSiteWith({ protection: '1' });
    const fleet = createProcess(site);
    site.sim.faults.add({
      kind: 'error',
      endpoint: 'PUT /nodes/{node}/qemu/{vmid}/config',
      status: 500,
      message: 'something went wrong',
      times: 3,
    });
    await fleet.scaleTo('workers', 1, REASON);
    await reconcileUntilIdle(site, fleet, { maxPasses: 200 });
    expect(await readMachines(site.store)).toMatchObject([{ phase: 'failed' }]);
    expect(readInventory(site)).toEqual(EMPTY_INVENTORY);
  });

  it('a machine that a user protected is deleted only after the protection is removed', async () => {
    const site = createSiteWith({});
    const fleet = createProcess(site);
    await fleet.scaleTo('workers', 1, REASON);
    await reconcileUntilIdle(site, fleet);
    const [vmId = 0] = readInventory(site).vms;
    site.sim.externalChanges.setOption(vmId, 'protection', '1');
    await fleet.scaleTo('workers', 0, REASON);
    await reconcileUntilIdle(site, fleet, { maxPasses: 60 });
    expect(readInventory(site).vms).toEqual([vmId]);
    site.sim.externalChanges.setOption(vmId, 'protection', undefined);
    await scaleToZero(site, fleet);
  });
});

describe('a template with fewer CPUs plugged in than it has cores', () => {
  it('gives machines with all the CPUs of their size', async () => {
    const site = createSiteWith({ cores: '4', vcpus: '1' });
    const fleet = createProcess(site);
    await fleet.scaleTo('workers', 1, REASON);
    await reconcileUntilIdle(site, fleet);
    const [machine] = await readMachines(site.store);
    const [vm] = site.sim.inspect().vms.filter(({ id }) => id < 9_000);
    expect(vm?.config['cores']).toBe(String(machine?.size.cpu));
    expect(vm?.config).not.toHaveProperty('vcpus');
    await scaleToZero(site, fleet);
  });
});

describe('a template with a cloud-init drive', () => {
  it.each(['ide0', 'ide2', 'scsi1'])(
    'as %s: its machines read only their own seed',
    async (slot) => {
      const site = createSite('full clone');
      const put = (id: number, host: string) =>
        site.settled(
          setVmOptions(
            site,
            { vmId: id, host },
            { [slot]: 'local-lvm:cloudinit', ciuser: 'admin' },
          ),
        );
      for (const [at, id] of TEMPLATES.entries()) await put(id, `pve${at + 1}`);
      const fleet = createProcess(site);
      await fleet.scaleTo('workers', 1, REASON);
      await reconcileUntilIdle(site, fleet);
      expect(await readMachines(site.store)).toMatchObject([{ phase: 'ready' }]);
      const [vm] = site.sim.inspect().vms.filter(({ id }) => id < 9_000);
      expect(JSON.stringify(vm?.config)).not.toContain('cloudinit');
      expect(readInventory(site).disks).toHaveLength(1);
      await scaleToZero(site, fleet);
    },
  );
});
