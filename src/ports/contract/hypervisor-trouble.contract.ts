// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Bench } from './hypervisor-bench.ts';

export function troubleContract(bench: () => Bench): void {
  describe('tasks', () => {
    it('are listed while they run, tell their log, and are unknown when their record is gone', async () => {
      const { hypervisor, it: under, order, end } = bench();
      const wanted = order();
      const task = await under.settled(hypervisor.createVm(wanted));
      const running = await under.settled(hypervisor.runningTasks(wanted.host, 'create'));
      expect(task).toMatchObject({ kind: 'create', host: wanted.host });
      const listed = { ...task, subject: wanted.vmId };
      expect(running).toContainEqual(listed);
      const others = await under.settled(hypervisor.runningTasks(wanted.host, 'clone'));
      expect(others).not.toContainEqual(listed);
      await end(Promise.resolve(task));
      const after = await under.settled(hypervisor.runningTasks(wanted.host, 'create'));
      expect(after).not.toContainEqual(listed);
      const log = await under.settled(hypervisor.taskLog(task, 1));
      expect(log).toHaveLength(1);
      expect(log[0]).toMatch(/^TASK OK/);
      const gone = 'UPID:nowhere:0000FFFF:0000FFFF:0000FFFF:qmcreate:1:nobody@pve:';
      const upid = gone.replace('nowhere', wanted.host);
      await expect(under.settled(hypervisor.task({ ...task, upid }))).rejects.toMatchObject({
        class: 'NotFound',
        code: 'TASK_NOT_FOUND',
      });
    });
  });

  describe('lost answers', () => {
    const LOST = { facts: expect.not.objectContaining({ requestSent: false }) };

    it('of a create: the VM is there, and tells whose it is once it is done', async () => {
      const { hypervisor, it: under, order, config } = bench();
      const wanted = order();
      under.loseAnswer('createVm');
      const work = under.settled(hypervisor.createVm(wanted));
      await expect(work).rejects.toMatchObject(LOST);
      await expect(work).rejects.toMatchObject({
        class: expect.stringMatching(/^(Unreachable|TimedOut)$/),
      });
      expect(await config(wanted)).toMatchObject({ vmId: wanted.vmId, lock: 'create' });
      await under.pass(60_000);
      expect(await config(wanted)).toMatchObject({
        lock: undefined,
        smbiosUuid: wanted.identity.smbiosUuid,
        description: wanted.identity.description,
      });
      await expect(under.settled(hypervisor.createVm(wanted))).rejects.toMatchObject({
        code: 'VM_ID_TAKEN',
      });
    });

    it('of a start and a destroy: done once, not twice', async () => {
      const { hypervisor, it: under, created, end } = bench();
      const vm = await created();
      under.loseAnswer('startVm');
      await expect(under.settled(hypervisor.startVm(vm))).rejects.toMatchObject(LOST);
      await under.pass(60_000);
      expect(await under.settled(hypervisor.vmState(vm))).toMatchObject({ power: 'running' });
      await end(hypervisor.stopVm(vm));
      under.loseAnswer('destroyVm');
      await expect(under.settled(hypervisor.destroyVm(vm))).rejects.toMatchObject(LOST);
      await under.pass(60_000);
      await expect(under.settled(hypervisor.destroyVm(vm))).resolves.toBeUndefined();
    });
  });

  describe('a VM that was moved', () => {
    it('is found where it is', async () => {
      const { hypervisor, it: under, created } = bench();
      const vm = await created();
      await under.move(vm.vmId, under.hosts[1]);
      await expect(under.settled(hypervisor.vmConfig(vm))).resolves.toMatchObject({
        vmId: vm.vmId,
        host: under.hosts[1],
      });
      await under.settled(hypervisor.setDescription(vm, 'moved'));
      await expect(under.settled(hypervisor.vmState(vm))).resolves.toMatchObject({
        host: under.hosts[1],
      });
    });
  });

  describe('rights and giving up', () => {
    it('names privileges', async () => {
      const { hypervisor, it: under } = bench();
      const privileges = await under.settled(hypervisor.permissions('/vms'));
      expect(privileges).toContain('VM.Allocate');
    });

    it('rejects with Cancelled when the signal is aborted or the hypervisor closed', async () => {
      const { hypervisor, it: under } = bench();
      const signal = AbortSignal.abort();
      await expect(under.settled(hypervisor.view({ signal }))).rejects.toMatchObject({
        code: 'CANCELLED',
      });
      await hypervisor.close();
      await expect(under.settled(hypervisor.view())).rejects.toMatchObject({ code: 'CANCELLED' });
    });
  });
}
