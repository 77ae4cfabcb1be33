// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { HypervisorFixture } from './hypervisor-fixture.ts';

export function failureContract(fixture: () => HypervisorFixture): void {
  describe('tasks', () => {
    it('are listed while they run, have a log, and fail with TASK_NOT_FOUND without a record', async () => {
      const { hypervisor, underTest, vmOrder, followToEnd } = fixture();
      const order = vmOrder();
      const task = await underTest.advanceUntil(hypervisor.createVm(order));
      const running = await underTest.advanceUntil(hypervisor.runningTasks(order.host, 'create'));
      expect(task).toMatchObject({ kind: 'create', host: order.host });
      const listed = { ...task, subject: order.vmId };
      expect(running).toContainEqual(listed);
      const others = await underTest.advanceUntil(hypervisor.runningTasks(order.host, 'clone'));
      expect(others).not.toContainEqual(listed);
      await followToEnd(Promise.resolve(task));
      const after = await underTest.advanceUntil(hypervisor.runningTasks(order.host, 'create'));
      expect(after).not.toContainEqual(listed);
      const log = await underTest.advanceUntil(hypervisor.taskLog(task, 1));
      expect(log).toHaveLength(1);
      expect(log[0]).toMatch(/^TASK OK/);
      const missing = 'UPID:host:0000FFFF:0000FFFF:0000FFFF:qmcreate:1:other@pve:';
      const upid = missing.replace('host', order.host);
      await expect(
        underTest.advanceUntil(hypervisor.task({ ...task, upid })),
      ).rejects.toMatchObject({
        class: 'NotFound',
        code: 'TASK_NOT_FOUND',
      });
    });
  });

  describe('a lost response', () => {
    const LOST = { facts: expect.not.objectContaining({ requestSent: false }) };

    it('of createVm: the VM exists and has its identity when the task ends', async () => {
      const { hypervisor, underTest, vmOrder, readConfig } = fixture();
      const order = vmOrder();
      underTest.dropResponse('createVm');
      const work = underTest.advanceUntil(hypervisor.createVm(order));
      await expect(work).rejects.toMatchObject(LOST);
      await expect(work).rejects.toMatchObject({
        class: expect.stringMatching(/^(Unreachable|TimedOut)$/),
      });
      expect(await readConfig(order)).toMatchObject({ vmId: order.vmId, lock: 'create' });
      await underTest.advance(60_000);
      expect(await readConfig(order)).toMatchObject({
        lock: undefined,
        smbiosUuid: order.identity.smbiosUuid,
        description: order.identity.description,
      });
      await expect(underTest.advanceUntil(hypervisor.createVm(order))).rejects.toMatchObject({
        code: 'VM_ID_TAKEN',
      });
    });

    it('of startVm and destroyVm: the call takes effect once', async () => {
      const { hypervisor, underTest, createVm, followToEnd } = fixture();
      const vm = await createVm();
      underTest.dropResponse('startVm');
      await expect(underTest.advanceUntil(hypervisor.startVm(vm))).rejects.toMatchObject(LOST);
      await underTest.advance(60_000);
      expect(await underTest.advanceUntil(hypervisor.vmState(vm))).toMatchObject({
        power: 'running',
      });
      await followToEnd(hypervisor.stopVm(vm));
      underTest.dropResponse('destroyVm');
      await expect(underTest.advanceUntil(hypervisor.destroyVm(vm))).rejects.toMatchObject(LOST);
      await underTest.advance(60_000);
      await expect(underTest.advanceUntil(hypervisor.destroyVm(vm))).resolves.toBeUndefined();
    });
  });

  describe('a VM that was moved', () => {
    it('is found on its new host', async () => {
      const { hypervisor, underTest, createVm } = fixture();
      const vm = await createVm();
      await underTest.move(vm.vmId, underTest.hosts[1]);
      await expect(underTest.advanceUntil(hypervisor.vmConfig(vm))).resolves.toMatchObject({
        vmId: vm.vmId,
        host: underTest.hosts[1],
      });
      const { digest } = await underTest.advanceUntil(hypervisor.vmConfig(vm));
      await underTest.advanceUntil(hypervisor.setDescription(vm, 'moved', { digest }));
      await expect(underTest.advanceUntil(hypervisor.vmState(vm))).resolves.toMatchObject({
        host: underTest.hosts[1],
      });
    });
  });

  describe('permissions and cancellation', () => {
    it('returns the privileges of the credentials', async () => {
      const { hypervisor, underTest } = fixture();
      const privileges = await underTest.advanceUntil(hypervisor.permissions('/vms'));
      expect(privileges).toContain('VM.Allocate');
    });

    it('rejects with CANCELLED when the signal is aborted or the hypervisor is closed', async () => {
      const { hypervisor, underTest } = fixture();
      const signal = AbortSignal.abort();
      await expect(underTest.advanceUntil(hypervisor.view({ signal }))).rejects.toMatchObject({
        code: 'CANCELLED',
      });
      await hypervisor.close();
      await expect(underTest.advanceUntil(hypervisor.view())).rejects.toMatchObject({
        code: 'CANCELLED',
      });
    });
  });
}
