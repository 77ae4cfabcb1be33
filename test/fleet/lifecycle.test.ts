// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  addressesInUse,
  aProcess,
  aSite,
  machinesIn,
  remains,
  SOURCES,
  type SourceName,
  untilAtRest,
  WHY,
} from './simulated-site.ts';

describe.each(Object.keys(SOURCES) as SourceName[])(
  'machines from %s on a simulated site',
  (source) => {
    it('come, are ready, and go without a trace', async () => {
      const site = aSite(source);
      const fleet = aProcess(site);
      await fleet.scaleTo('workers', 3, WHY);
      await untilAtRest(site, fleet);
      const machines = await machinesIn(site.store);
      expect(machines.map(({ phase, failure }) => failure?.message ?? phase)).toEqual([
        'ready',
        'ready',
        'ready',
      ]);
      const present = remains(site);
      expect(present.machines.toSorted()).toEqual(machines.map(({ id }) => id).sort());
      expect(present.isos).toEqual([]);
      expect(new Set(machines.map(({ placement }) => placement?.host)).size).toBe(3);
      for (const vm of site.sim.inspect().vms.filter(({ id }) => id < 9_000)) {
        expect(vm.config['scsi0']).toContain('size=20G');
        expect(vm.config['tags']).toBe('ca-group-workers;pvescaler');
      }
      await fleet.scaleTo('workers', 0, WHY);
      await untilAtRest(site, fleet);
      expect(remains(site)).toEqual({ vms: [], machines: [], isos: [], disks: [] });
      expect(await addressesInUse(site.store)).toBe(0);
    });

    it('have their disk attached as the pool says', async () => {
      const plain = aSite(source);
      const pool = plain.settings.pools['workers']!;
      const disk = { ...pool.disk, discard: false, ssd: true, cache: 'writeback' } as const;
      const site = {
        ...plain,
        settings: { ...plain.settings, pools: { workers: { ...pool, disk } } },
      };
      const fleet = aProcess(site);
      await fleet.scaleTo('workers', 1, WHY);
      await untilAtRest(site, fleet);
      const [vm] = site.sim.inspect().vms.filter(({ id }) => id < 9_000);
      const parts = (vm?.config['scsi0'] ?? '').split(',');
      expect(parts).toEqual(expect.arrayContaining(['ssd=1', 'iothread=1', 'cache=writeback']));
      expect(parts).not.toContain('discard=on');
    });
  },
);
