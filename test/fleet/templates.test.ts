// SPDX-License-Identifier: Apache-2.0
// A clone has all that its template has. What a template is rightly given must not stay on a machine.
import { describe, expect, it } from 'vitest';
import { setVmOptions } from '../proxmox/simulated-region.ts';
import {
  aProcess,
  aSite,
  machinesIn,
  remains,
  type Site,
  untilAtRest,
  WHY,
} from './simulated-site.ts';

const TEMPLATES = [9_000, 9_001, 9_002];
const NOTHING = { vms: [], machines: [], isos: [], disks: [] };

function aSiteWith(options: Readonly<Record<string, string>>): Site {
  const site = aSite('full clone');
  for (const id of TEMPLATES) {
    for (const [name, value] of Object.entries(options)) {
      site.sim.externalChanges.setOption(id, name, value);
    }
  }
  return site;
}

async function goes(site: Site, fleet: ReturnType<typeof aProcess>): Promise<void> {
  await fleet.scaleTo('workers', 0, WHY);
  await untilAtRest(site, fleet, { rounds: 200 });
  expect(remains(site)).toEqual(NOTHING);
}

describe('a template that is protected', () => {
  it('makes machines that are not', async () => {
    const site = aSiteWith({ protection: '1' });
    const fleet = aProcess(site);
    await fleet.scaleTo('workers', 1, WHY);
    await untilAtRest(site, fleet);
    expect(await machinesIn(site.store)).toMatchObject([{ phase: 'ready' }]);
    await goes(site, fleet);
    const left = site.sim.inspect().vms.filter(({ config }) => config['protection'] === '1');
    expect(left.map(({ id }) => id)).toEqual(TEMPLATES);
  });

  it('leaves nothing behind of a machine that never got as far', async () => {
    const site = aSiteWith({ protection: '1' });
    const fleet = aProcess(site);
    site.sim.faults.add({
      kind: 'error',
      endpoint: 'PUT /nodes/{node}/qemu/{vmid}/config',
      status: 500,
      message: 'something went wrong',
      times: 3,
    });
    await fleet.scaleTo('workers', 1, WHY);
    await untilAtRest(site, fleet, { rounds: 200 });
    expect(await machinesIn(site.store)).toMatchObject([{ phase: 'failed' }]);
    expect(remains(site)).toEqual(NOTHING);
  });

  it('a machine that a person protected stays until that is taken back', async () => {
    const site = aSiteWith({});
    const fleet = aProcess(site);
    await fleet.scaleTo('workers', 1, WHY);
    await untilAtRest(site, fleet);
    const [vmId = 0] = remains(site).vms;
    site.sim.externalChanges.setOption(vmId, 'protection', '1');
    await fleet.scaleTo('workers', 0, WHY);
    await untilAtRest(site, fleet, { rounds: 60 });
    expect(remains(site).vms).toEqual([vmId]);
    site.sim.externalChanges.setOption(vmId, 'protection', undefined);
    await goes(site, fleet);
  });
});

describe('a template with a cloud-init drive', () => {
  it.each(['ide0', 'ide2', 'scsi1'])(
    'as %s: its machines read their own seed alone',
    async (slot) => {
      const site = aSite('full clone');
      const put = (id: number, host: string) =>
        site.settled(
          setVmOptions(
            site,
            { vmId: id, host },
            { [slot]: 'local-lvm:cloudinit', ciuser: 'somebody' },
          ),
        );
      for (const [at, id] of TEMPLATES.entries()) await put(id, `pve${at + 1}`);
      const fleet = aProcess(site);
      await fleet.scaleTo('workers', 1, WHY);
      await untilAtRest(site, fleet);
      expect(await machinesIn(site.store)).toMatchObject([{ phase: 'ready' }]);
      const [vm] = site.sim.inspect().vms.filter(({ id }) => id < 9_000);
      expect(JSON.stringify(vm?.config)).not.toContain('cloudinit');
      expect(remains(site).disks).toHaveLength(1);
      await goes(site, fleet);
    },
  );
});
