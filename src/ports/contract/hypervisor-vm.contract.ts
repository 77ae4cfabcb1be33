// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { HypervisorFixture } from './hypervisor-fixture.ts';

const GIBIBYTE = 2 ** 30;

export function vmContract(fixture: () => HypervisorFixture): void {
  describe('hostFingerprints', () => {
    it('returns the same fingerprint of each host every time, and different ones of two hosts', async () => {
      const { hypervisor, underTest } = fixture();
      const { hosts, advanceUntil } = underTest;
      const first = await advanceUntil(hypervisor.hostFingerprints());
      expect(new Set(hosts.map((host) => first.get(host))).size).toBe(hosts.length);
      const second = await advanceUntil(hypervisor.hostFingerprints());
      expect([...second]).toEqual([...first]);
    });
  });

  describe('view', () => {
    it('returns hosts, storages, templates and taken ids', async () => {
      const { hypervisor, underTest } = fixture();
      const view = await underTest.advanceUntil(hypervisor.view());
      expect(view.region).toBe(hypervisor.region);
      expect(view.version).toMatch(/^\d+\.\d+/);
      for (const name of underTest.hosts) {
        const host = view.hosts.find((candidate) => candidate.name === name);
        expect(host).toMatchObject({ region: hypervisor.region, online: true });
        expect(host?.cpus).toBeGreaterThan(0);
        expect(host?.memoryBytes).toBeGreaterThan(0);
      }
      const storages = view.hosts.find((host) => host.name === underTest.hosts[0])?.storages ?? [];
      const content = (name: string) => storages.find((one) => one.name === name)?.content;
      expect(content(underTest.storages.disks)).toContain('images');
      expect(content(underTest.storages.isos)).toContain('iso');
      expect(content(underTest.storages.images)).toContain('import');
      const template = view.vms.find((vm) => vm.vmId === underTest.template.vmId);
      expect(template).toMatchObject({ host: underTest.template.host, isTemplate: true });
      expect(view.takenVmIds).toContain(underTest.template.vmId);
    });

    it('returns the size of containers, and their ids as taken', async () => {
      const { hypervisor, underTest, vmOrder } = fixture();
      const { vmId, cpus, memoryBytes } = underTest.container;
      const view = await underTest.advanceUntil(hypervisor.view());
      const known = { power: 'running', isTemplate: false };
      expect(view.containers).toEqual([
        { vmId, host: underTest.hosts[1], cpus, memoryBytes, ...known },
      ]);
      expect(view.vms.map((vm) => vm.vmId)).not.toContain(vmId);
      expect(view.takenVmIds).toContain(vmId);
      await expect(
        underTest.advanceUntil(hypervisor.createVm(vmOrder({ vmId }))),
      ).rejects.toMatchObject({
        code: 'VM_ID_TAKEN',
      });
    });

    it('returns the configured size of a VM as soon as its configuration exists', async () => {
      const { hypervisor, underTest, createVm, readConfig, vmSpec } = fixture();
      const vm = await createVm();
      const readSize = async () => {
        const view = await underTest.advanceUntil(hypervisor.view());
        const { cpus, memoryBytes } = view.vms.find((one) => one.vmId === vm.vmId) ?? {};
        return [cpus, memoryBytes];
      };
      expect(await readSize()).toEqual([2, 2 * GIBIBYTE]);
      const { digest } = await readConfig(vm);
      await underTest.advanceUntil(hypervisor.applySpec(vm, vmSpec(), { digest }));
      await underTest.advance(15_000);
      expect(await readSize()).toEqual([6, 4 * GIBIBYTE]);
    });

    it('returns a new VM immediately with id and host, and later with all values', async () => {
      const { hypervisor, underTest, vmOrder, followToEnd } = fixture();
      const order = vmOrder();
      // The first view also reads the version, during which the task could end.
      await underTest.advanceUntil(hypervisor.view());
      const task = underTest.advanceUntil(hypervisor.createVm(order));
      await task;
      const early = await underTest.advanceUntil(hypervisor.view());
      expect(early.takenVmIds).toContain(order.vmId);
      const newVm = early.vms.find((vm) => vm.vmId === order.vmId);
      expect(newVm).toMatchObject({ host: order.host, isTemplate: false, isBeingCreated: true });
      expect([newVm?.cpus, newVm?.memoryBytes]).toEqual([undefined, undefined]);
      await followToEnd(task);
      await underTest.advance(15_000);
      const later = await underTest.advanceUntil(hypervisor.view());
      expect(later.vms.find((vm) => vm.vmId === order.vmId)).toMatchObject({
        name: order.identity.name,
        power: 'stopped',
        tags: ['ca-group-a', 'pvescaler'],
        lock: undefined,
        isBeingCreated: false,
        cpus: 2,
        memoryBytes: 2 * GIBIBYTE,
      });
    });
  });

  describe('createVm', () => {
    it('claims the id immediately, and sets the identity when the task ends', async () => {
      const { hypervisor, underTest, vmOrder, followToEnd, readConfig } = fixture();
      const order = vmOrder();
      const task = await underTest.advanceUntil(hypervisor.createVm(order));
      const { name, description, smbiosUuid } = order.identity;
      const identity = { vmId: order.vmId, host: order.host, name, description, smbiosUuid };
      expect(await readConfig(order)).toMatchObject({ isBeingCreated: true, lock: 'create' });
      expect(await followToEnd(Promise.resolve(task))).toMatchObject({ succeeded: true });
      const created = await readConfig(order);
      expect(created).toMatchObject({
        ...identity,
        lock: undefined,
        isBeingCreated: false,
        isProtected: false,
        bootDisk: { storage: order.disk.storage, bytes: 4 * GIBIBYTE },
        seedVolume: undefined,
        isTemplate: false,
        cpus: 2,
        memoryBytes: 2 * GIBIBYTE,
      });
      expect(created.tags).toEqual(['ca-group-a', 'pvescaler']);
      expect(await underTest.advanceUntil(hypervisor.vmState(order))).toMatchObject({
        power: 'stopped',
        lock: undefined,
      });
    });

    it('refuses a taken id on every host, and changes nothing', async () => {
      const { hypervisor, underTest, vmOrder, createVm, readConfig } = fixture();
      const vm = await createVm();
      const before = await readConfig(vm);
      for (const host of underTest.hosts) {
        const again = hypervisor.createVm(vmOrder({ vmId: vm.vmId, host }));
        await expect(underTest.advanceUntil(again)).rejects.toMatchObject({
          class: 'Conflict',
          code: 'VM_ID_TAKEN',
        });
      }
      expect(await readConfig(vm)).toEqual(before);
    });

    it('removes the VM when the task fails', async () => {
      const { hypervisor, underTest, vmOrder, followToEnd } = fixture();
      const { disks, images } = underTest.storages;
      const importFrom = `${images}:import/nosuch.qcow2`;
      const order = vmOrder({ disk: { storage: disks, bytes: GIBIBYTE, importFrom } });
      const status = await followToEnd(hypervisor.createVm(order));
      expect(status).toMatchObject({
        succeeded: false,
        failure: { class: 'NotFound', code: 'VOLUME_NOT_FOUND' },
      });
      await expect(underTest.advanceUntil(hypervisor.vmConfig(order))).rejects.toMatchObject({
        code: 'VM_NOT_FOUND',
      });
    });
  });

  describe('cloneVm', () => {
    it.each([true, false])(
      'copies the template (linked: %s) with a new name and UUID',
      async (linked) => {
        const { hypervisor, underTest, vmOrder, followToEnd, readConfig } = fixture();
        const { vmId, host } = vmOrder();
        const source = underTest.template;
        const storage = linked ? {} : { storage: underTest.storages.disks };
        const clone = {
          vmId,
          host,
          source,
          linked,
          ...storage,
          name: 'copy-1',
          description: 'mine',
        };
        expect(await followToEnd(hypervisor.cloneVm(clone))).toMatchObject({ succeeded: true });
        const copy = await readConfig({ vmId, host });
        expect(copy).toMatchObject({
          name: 'copy-1',
          description: 'mine',
          isTemplate: false,
          lock: undefined,
        });
        const original = await readConfig(source);
        expect(copy.tags).toEqual(original.tags);
        if (copy.smbiosUuid !== undefined) expect(copy.smbiosUuid).not.toBe(original.smbiosUuid);
      },
    );

    it('refuses a taken id, as a rejection or as a failed task', async () => {
      const { hypervisor, underTest, createVm, followToEnd } = fixture();
      const taken = await createVm();
      const source = underTest.template;
      const clone = { ...taken, source, linked: false, name: 'copy-2', description: 'mine' };
      const failure = await followToEnd(hypervisor.cloneVm(clone)).then(
        (status) => status.failure,
        (error: unknown) => error,
      );
      expect(failure).toMatchObject({ class: 'Conflict', code: 'VM_ID_TAKEN' });
    });

    it('fails with TEMPLATE_NOT_FOUND without a source', async () => {
      const { hypervisor, underTest, vmOrder } = fixture();
      const { vmId, host } = vmOrder();
      const clone = { vmId, host, linked: false, name: 'copy-3', description: 'mine' };
      const work = hypervisor.cloneVm({ ...clone, source: { vmId: 4_999, host } });
      await expect(underTest.advanceUntil(work)).rejects.toMatchObject({
        code: 'TEMPLATE_NOT_FOUND',
      });
    });
  });

  describe('configuration changes', () => {
    it('apply a spec, and write nothing when nothing differs', async () => {
      const { hypervisor, underTest, createVm, readConfig, vmSpec } = fixture();
      const vm = await createVm();
      const before = await readConfig(vm);
      const apply = (digest: string) =>
        underTest.advanceUntil(hypervisor.applySpec(vm, vmSpec(), { digest }));
      expect(await apply(before.digest)).toBe(true);
      const changed = await readConfig(vm);
      expect(changed).toMatchObject({
        cpus: 6,
        memoryBytes: 4 * GIBIBYTE,
        smbiosUuid: '0a1b2c3d-1111-4000-8000-000000000001',
        description: before.description,
      });
      expect(changed.tags).toEqual(['x', 'y']);
      expect(await apply(changed.digest)).toBe(false);
      expect(await readConfig(vm)).toEqual(changed);
    });

    it('set the description idempotently', async () => {
      const { hypervisor, underTest, createVm, readConfig } = fixture();
      const vm = await createVm();
      const digestOf = async () => ({ digest: (await readConfig(vm)).digest });
      for (let pass = 0; pass < 2; pass += 1) {
        const change = hypervisor.setDescription(vm, 'changed\nlines', await digestOf());
        await underTest.advanceUntil(change);
      }
      expect(await readConfig(vm)).toMatchObject({ description: 'changed\nlines', cpus: 2 });
      await underTest.advanceUntil(hypervisor.removeProtection(vm, await digestOf()));
      const change = { removeProtection: true, ...(await digestOf()) };
      await underTest.advanceUntil(hypervisor.setDescription(vm, 'again', change));
      expect(await readConfig(vm)).toMatchObject({ description: 'again', isProtected: false });
    });

    it('set the tags together with the description, and remove all of them', async () => {
      const { hypervisor, underTest, createVm, readConfig } = fixture();
      const vm = await createVm();
      for (const tags of [['b', 'c'], []]) {
        const { digest } = await readConfig(vm);
        await underTest.advanceUntil(hypervisor.setDescription(vm, 'notes', { tags, digest }));
        const changed = await readConfig(vm);
        expect(changed.description).toBe('notes');
        expect(changed.tags).toEqual(tags);
      }
    });

    it('are refused with the digest of an older configuration', async () => {
      const { hypervisor, underTest, createVm, readConfig, vmSpec } = fixture();
      const vm = await createVm();
      const { digest } = await readConfig(vm);
      await underTest.advanceUntil(hypervisor.setDescription(vm, 'first', { digest }));
      for (const second of [
        () => hypervisor.setDescription(vm, 'second', { digest }),
        () => hypervisor.applySpec(vm, vmSpec(), { digest }),
        () => hypervisor.ejectSeed(vm, { digest }),
        () => hypervisor.attachSeed(vm, 'local:iso/seed.iso', { digest }),
        () => hypervisor.removeProtection(vm, { digest }),
        () => hypervisor.growBootDisk(vm, 64 * GIBIBYTE, { digest }),
      ]) {
        const refused = underTest.advanceUntil<unknown>(second());
        await expect(refused).rejects.toMatchObject({ code: 'VM_CHANGED' });
      }
      expect(await readConfig(vm)).toMatchObject({ description: 'first', cpus: 2 });
    });

    it('grow the boot disk only if it is smaller', async () => {
      const { hypervisor, underTest, createVm, followToEnd, readConfig } = fixture();
      const vm = await createVm();
      const bytes = 8 * GIBIBYTE;
      const grow = async (to: number) => {
        const { digest } = await readConfig(vm);
        return underTest.advanceUntil(hypervisor.growBootDisk(vm, to, { digest }));
      };
      const task = await grow(bytes);
      expect(task).toMatchObject({ kind: 'resize', host: vm.host });
      expect(await followToEnd(Promise.resolve(task))).toMatchObject({ succeeded: true });
      for (const enough of [bytes, GIBIBYTE]) {
        await expect(grow(enough)).resolves.toBeUndefined();
      }
      expect((await readConfig(vm)).bootDisk?.bytes).toBe(bytes);
    });
  });
}
