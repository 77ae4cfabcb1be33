// SPDX-License-Identifier: Apache-2.0
// Proxmox destroys a VM also when it cannot remove its disk, and only warns about it.
import { expect, it } from 'vitest';
import { aProcess, aSite, machinesIn, remains, untilAtRest, WHY } from './simulated-site.ts';

it('a disk that stays when its VM is gone is told by name', async () => {
  const site = aSite('image');
  const fleet = aProcess(site);
  await fleet.scaleTo('workers', 1, WHY);
  await untilAtRest(site, fleet);
  const [machine] = await machinesIn(site.store);
  site.sim.externalChanges.setStorageActive('local-lvm', false);
  await fleet.scaleTo('workers', 0, WHY);
  await untilAtRest(site, fleet);
  expect(remains(site)).toMatchObject({ vms: [], disks: [1_250] });
  const told = await site.store.journal.read({ machine: machine?.id ?? '' });
  const warnings = told.filter(({ reason }) => reason === 'DestroyedWithWarnings');
  expect(warnings).toHaveLength(1);
  expect(warnings[0]?.message).toContain('local-lvm:vm-1250-disk-0');
});
