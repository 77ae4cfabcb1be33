// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Bench } from './hypervisor-bench.ts';

const GIBIBYTE = 2 ** 30;

export function vmContract(bench: () => Bench): void {
  describe('the view', () => {
    it('shows hosts, storages, templates and the ids taken', async () => {
      const { hypervisor, it: under } = bench();
      const view = await under.settled(hypervisor.view());
      expect(view.region).toBe(hypervisor.region);
      expect(view.version).toMatch(/^\d+\.\d+/);
      for (const name of under.hosts) {
        const host = view.hosts.find((candidate) => candidate.name === name);
        expect(host).toMatchObject({ region: hypervisor.region, online: true });
        expect(host?.cpus).toBeGreaterThan(0);
        expect(host?.memoryBytes).toBeGreaterThan(0);
      }
      const storages = view.hosts.find((host) => host.name === under.hosts[0])?.storages ?? [];
      const content = (name: string) => storages.find((one) => one.name === name)?.content;
      expect(content(under.storages.disks)).toContain('images');
      expect(content(under.storages.isos)).toContain('iso');
      expect(content(under.storages.images)).toContain('import');
      const template = view.vms.find((vm) => vm.vmId === under.template.vmId);
      expect(template).toMatchObject({ host: under.template.host, isTemplate: true });
      expect(view.takenVmIds).toContain(under.template.vmId);
    });

    it('shows what containers take of their host, and that their ids are taken', async () => {
      const { hypervisor, it: under, order } = bench();
      const { vmId, cpus, memoryBytes } = under.container;
      const view = await under.settled(hypervisor.view());
      const known = { power: 'running', isTemplate: false };
      expect(view.containers).toEqual([
        { vmId, host: under.hosts[1], cpus, memoryBytes, ...known },
      ]);
      expect(view.vms.map((vm) => vm.vmId)).not.toContain(vmId);
      expect(view.takenVmIds).toContain(vmId);
      await expect(under.settled(hypervisor.createVm(order({ vmId })))).rejects.toMatchObject({
        code: 'VM_ID_TAKEN',
      });
    });

    it('counts a VM by its configuration as soon as that is there', async () => {
      const { hypervisor, it: under, created, spec } = bench();
      const vm = await created();
      const sizeSeen = async () => {
        const view = await under.settled(hypervisor.view());
        const { cpus, memoryBytes } = view.vms.find((one) => one.vmId === vm.vmId) ?? {};
        return [cpus, memoryBytes];
      };
      expect(await sizeSeen()).toEqual([2, 2 * GIBIBYTE]);
      await under.settled(hypervisor.applySpec(vm, spec()));
      await under.pass(15_000);
      expect(await sizeSeen()).toEqual([6, 4 * GIBIBYTE]);
    });

    it('shows a VM at once by id, host and lock, and all of it after a while', async () => {
      const { hypervisor, it: under, order, end } = bench();
      const wanted = order();
      const task = under.settled(hypervisor.createVm(wanted));
      await task;
      const early = await under.settled(hypervisor.view());
      expect(early.takenVmIds).toContain(wanted.vmId);
      const seen = early.vms.find((vm) => vm.vmId === wanted.vmId);
      expect(seen).toMatchObject({ host: wanted.host, isTemplate: false, isBeingCreated: true });
      expect([seen?.cpus, seen?.memoryBytes]).toEqual([undefined, undefined]);
      await end(task);
      await under.pass(15_000);
      const later = await under.settled(hypervisor.view());
      expect(later.vms.find((vm) => vm.vmId === wanted.vmId)).toMatchObject({
        name: wanted.identity.name,
        power: 'stopped',
        tags: ['ca-group-a', 'pvescaler'],
        lock: undefined,
        isBeingCreated: false,
        cpus: 2,
        memoryBytes: 2 * GIBIBYTE,
      });
    });
  });

  describe('creating', () => {
    it('claims the id at once; the identity is there when the task has ended', async () => {
      const { hypervisor, it: under, order, end, config } = bench();
      const wanted = order();
      const task = await under.settled(hypervisor.createVm(wanted));
      const { name, description, smbiosUuid } = wanted.identity;
      const identity = { vmId: wanted.vmId, host: wanted.host, name, description, smbiosUuid };
      expect(await config(wanted)).toMatchObject({ isBeingCreated: true, lock: 'create' });
      expect(await end(Promise.resolve(task))).toMatchObject({ succeeded: true });
      const made = await config(wanted);
      expect(made).toMatchObject({
        ...identity,
        lock: undefined,
        isBeingCreated: false,
        isProtected: false,
        bootDisk: { storage: wanted.disk.storage, bytes: 4 * GIBIBYTE },
        seedVolume: undefined,
        isTemplate: false,
        cpus: 2,
        memoryBytes: 2 * GIBIBYTE,
      });
      expect(made.tags).toEqual(['ca-group-a', 'pvescaler']);
      expect(await under.settled(hypervisor.vmState(wanted))).toMatchObject({
        power: 'stopped',
        lock: undefined,
      });
    });

    it('refuses an id that is taken, on whatever host, and changes nothing', async () => {
      const { hypervisor, it: under, order, created, config } = bench();
      const vm = await created();
      const before = await config(vm);
      for (const host of under.hosts) {
        const again = hypervisor.createVm(order({ vmId: vm.vmId, host }));
        await expect(under.settled(again)).rejects.toMatchObject({
          class: 'Conflict',
          code: 'VM_ID_TAKEN',
        });
      }
      expect(await config(vm)).toEqual(before);
    });

    it('removes the VM again when the task fails', async () => {
      const { hypervisor, it: under, order, end } = bench();
      const { disks, images } = under.storages;
      const importFrom = `${images}:import/nosuch.qcow2`;
      const wanted = order({ disk: { storage: disks, bytes: GIBIBYTE, importFrom } });
      const status = await end(hypervisor.createVm(wanted));
      expect(status).toMatchObject({
        succeeded: false,
        failure: { class: 'NotFound', code: 'VOLUME_NOT_FOUND' },
      });
      await expect(under.settled(hypervisor.vmConfig(wanted))).rejects.toMatchObject({
        code: 'VM_NOT_FOUND',
      });
    });
  });

  describe('cloning', () => {
    it.each([true, false])(
      'copies the template (linked: %s), under its own name and UUID',
      async (linked) => {
        const { hypervisor, it: under, order, end, config } = bench();
        const { vmId, host } = order();
        const source = under.template;
        const storage = linked ? {} : { storage: under.storages.disks };
        const clone = {
          vmId,
          host,
          source,
          linked,
          ...storage,
          name: 'copy-1',
          description: 'mine',
        };
        expect(await end(hypervisor.cloneVm(clone))).toMatchObject({ succeeded: true });
        const copy = await config({ vmId, host });
        expect(copy).toMatchObject({
          name: 'copy-1',
          description: 'mine',
          isTemplate: false,
          lock: undefined,
        });
        const original = await config(source);
        expect(copy.tags).toEqual(original.tags);
        if (copy.smbiosUuid !== undefined) expect(copy.smbiosUuid).not.toBe(original.smbiosUuid);
      },
    );

    it('refuses an id that is taken, at once or in the task', async () => {
      const { hypervisor, it: under, created, end } = bench();
      const taken = await created();
      const source = under.template;
      const clone = { ...taken, source, linked: false, name: 'copy-2', description: 'mine' };
      const failure = await end(hypervisor.cloneVm(clone)).then(
        (status) => status.failure,
        (error: unknown) => error,
      );
      expect(failure).toMatchObject({ class: 'Conflict', code: 'VM_ID_TAKEN' });
    });

    it('says when there is nothing to clone', async () => {
      const { hypervisor, it: under, order } = bench();
      const { vmId, host } = order();
      const clone = { vmId, host, linked: false, name: 'copy-3', description: 'mine' };
      const work = hypervisor.cloneVm({ ...clone, source: { vmId: 4_999, host } });
      await expect(under.settled(work)).rejects.toMatchObject({ code: 'TEMPLATE_NOT_FOUND' });
    });
  });

  describe('configuring', () => {
    it('applies a spec, and writes nothing when nothing differs', async () => {
      const { hypervisor, it: under, created, config, spec } = bench();
      const vm = await created();
      const before = await config(vm);
      expect(await under.settled(hypervisor.applySpec(vm, spec()))).toBe(true);
      const changed = await config(vm);
      expect(changed).toMatchObject({
        cpus: 6,
        memoryBytes: 4 * GIBIBYTE,
        smbiosUuid: '0a1b2c3d-1111-4000-8000-000000000001',
        description: before.description,
      });
      expect(changed.tags).toEqual(['x', 'y']);
      expect(await under.settled(hypervisor.applySpec(vm, spec()))).toBe(false);
      expect(await config(vm)).toEqual(changed);
    });

    it('sets the description, as often as it is called', async () => {
      const { hypervisor, it: under, created, config } = bench();
      const vm = await created();
      for (let turn = 0; turn < 2; turn += 1) {
        await under.settled(hypervisor.setDescription(vm, 'changed\nlines'));
      }
      expect(await config(vm)).toMatchObject({ description: 'changed\nlines', cpus: 2 });
      await under.settled(hypervisor.removeProtection(vm));
      const removeProtection = true;
      await under.settled(hypervisor.setDescription(vm, 'again', { removeProtection }));
      expect(await config(vm)).toMatchObject({ description: 'again', isProtected: false });
    });

    it('refuses a change based on an old reading', async () => {
      const { hypervisor, it: under, created, config, spec } = bench();
      const vm = await created();
      const { digest } = await config(vm);
      await under.settled(hypervisor.setDescription(vm, 'first', { digest }));
      for (const second of [
        () => hypervisor.setDescription(vm, 'second', { digest }),
        () => hypervisor.applySpec(vm, spec(), { digest }),
        () => hypervisor.ejectSeed(vm, { digest }),
      ]) {
        const refused = under.settled<unknown>(second());
        await expect(refused).rejects.toMatchObject({ code: 'VM_CHANGED' });
      }
      expect(await config(vm)).toMatchObject({ description: 'first', cpus: 2 });
    });

    it('grows the boot disk, and only if it is smaller', async () => {
      const { hypervisor, it: under, created, end, config } = bench();
      const vm = await created();
      const bytes = 8 * GIBIBYTE;
      const task = await under.settled(hypervisor.growBootDisk(vm, bytes));
      expect(task).toMatchObject({ kind: 'resize', host: vm.host });
      expect(await end(Promise.resolve(task))).toMatchObject({ succeeded: true });
      for (const enough of [bytes, GIBIBYTE]) {
        const again = under.settled(hypervisor.growBootDisk(vm, enough));
        await expect(again).resolves.toBeUndefined();
      }
      expect((await config(vm)).bootDisk?.bytes).toBe(bytes);
    });
  });
}
