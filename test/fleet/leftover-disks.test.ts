// SPDX-License-Identifier: Apache-2.0
// Proxmox destroys a VM even when it cannot delete its disk, and only warns about it.
import { expect, it } from 'vitest';
import {
  createProcess,
  createSite,
  REASON,
  readInventory,
  readMachines,
  reconcileUntilIdle,
} from './simulated-site.ts';

it('the journal names a disk that Proxmox could not delete with its VM', async () => {
  const site = createSite('image');
  const fleet = createProcess(site);
  await fleet.scaleTo('workers', 1, REASON);
  await reconcileUntilIdle(site, fleet);
  const [machine] = await readMachines(site.store);
  site.sim.externalChanges.setStorageActive('local-lvm', false);
  await fleet.scaleTo('workers', 0, REASON);
  await reconcileUntilIdle(site, fleet);
  expect(readInventory(site)).toMatchObject({ vms: [], disks: [1_250] });
  const entries = await site.store.journal.read({ machine: machine?.id ?? '' });
  const warnings = entries.filter(({ reason }) => reason === 'DestroyedWithWarnings');
  expect(warnings).toHaveLength(1);
  expect(warnings[0]?.message).toContain('local-lvm:vm-1250-disk-0');
});
