// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  countAddressesInUse,
  createProcess,
  createSite,
  REASON,
  readInventory,
  readMachines,
  reconcileUntilIdle,
  SOURCES,
  type SourceName,
} from './simulated-site.ts';

describe.each(Object.keys(SOURCES) as SourceName[])(
  'machines from %s on a simulated site',
  (source) => {
    it('become ready and are deleted without leftovers', async () => {
      const site = createSite(source);
      const fleet = createProcess(site);
      await fleet.scaleTo('workers', 3, REASON);
      await reconcileUntilIdle(site, fleet);
      const machines = await readMachines(site.store);
      expect(machines.map(({ phase, failure }) => failure?.message ?? phase)).toEqual([
        'ready',
        'ready',
        'ready',
      ]);
      const present = readInventory(site);
      expect(present.machines.toSorted()).toEqual(machines.map(({ id }) => id).sort());
      expect(present.isos).toEqual([]);
      expect(new Set(machines.map(({ placement }) => placement?.host)).size).toBe(3);
      for (const vm of site.sim.inspect().vms.filter(({ id }) => id < 9_000)) {
        expect(vm.config['scsi0']).toContain('size=20G');
        expect(vm.config['tags']).toBe('ca-group-workers;pvescaler');
      }
      await fleet.scaleTo('workers', 0, REASON);
      await reconcileUntilIdle(site, fleet);
      expect(readInventory(site)).toEqual({ vms: [], machines: [], isos: [], disks: [] });
      expect(await countAddressesInUse(site.store)).toBe(0);
    });

    it('have the disk options of their pool', async () => {
      const plain = createSite(source);
      const pool = plain.settings.pools['workers']!;
      const disk = { ...pool.disk, discard: false, ssd: true, cache: 'writeback' } as const;
      const site = {
        ...plain,
        settings: { ...plain.settings, pools: { workers: { ...pool, disk } } },
      };
      const fleet = createProcess(site);
      await fleet.scaleTo('workers', 1, REASON);
      await reconcileUntilIdle(site, fleet);
      const [vm] = site.sim.inspect().vms.filter(({ id }) => id < 9_000);
      const parts = (vm?.config['scsi0'] ?? '').split(',');
      expect(parts).toEqual(expect.arrayContaining(['ssd=1', 'iothread=1', 'cache=writeback']));
      expect(parts).not.toContain('discard=on');
    });
  },
);
