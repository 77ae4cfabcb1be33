// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { HypervisorFixture } from './hypervisor-fixture.ts';

export function guestContract(fixture: () => HypervisorFixture): void {
  describe('power and guest', () => {
    it('starts a VM; the task of a second start fails', async () => {
      const { hypervisor, underTest, createVm, followToEnd } = fixture();
      const vm = await createVm();
      expect(await followToEnd(hypervisor.startVm(vm))).toMatchObject({ succeeded: true });
      expect(await underTest.advanceUntil(hypervisor.vmState(vm))).toMatchObject({
        power: 'running',
      });
      expect(await followToEnd(hypervisor.startVm(vm))).toMatchObject({
        succeeded: false,
        failure: { class: 'Conflict' },
      });
    });

    it('reports whether the guest agent responds, returns its addresses and runs a command', async () => {
      const { hypervisor, underTest, createVm, bootVm } = fixture();
      const silent = await createVm();
      await expect(underTest.advanceUntil(hypervisor.guestIsUp(silent))).resolves.toBe(false);
      await expect(
        underTest.advanceUntil(hypervisor.guestInterfaces(silent)),
      ).rejects.toMatchObject({
        class: 'Unreachable',
        code: 'GUEST_AGENT_SILENT',
      });
      const vm = await bootVm();
      const interfaces = await underTest.advanceUntil(hypervisor.guestInterfaces(vm));
      const addresses = interfaces.flatMap((one) => one.addresses);
      expect(interfaces.map((one) => one.name)).not.toContain('lo');
      expect(addresses.every((address) => /\/\d+$/.test(address))).toBe(true);
      expect(addresses.some((address) => /^(127\.|::1|fe80|169\.254\.)/.test(address))).toBe(false);
      const command = { command: ['/bin/cat'], input: 'from stdin', timeoutMs: 60_000 };
      await expect(underTest.advanceUntil(hypervisor.guestExec(vm, command))).resolves.toEqual({
        exitCode: 0,
        output: 'from stdin',
        errorOutput: '',
      });
    });

    it('preserves non-ASCII input and output of a guest command', async () => {
      const { hypervisor, underTest, bootVm } = fixture();
      const vm = await bootVm();
      const input = 'naïve – Grüße, 日本語 ☃\n';
      const command = { command: ['/bin/cat'], input, timeoutMs: 60_000 };
      await expect(
        underTest.advanceUntil(hypervisor.guestExec(vm, command)),
      ).resolves.toMatchObject({
        exitCode: 0,
        output: input,
      });
    });

    it('shuts down and stops a VM, also if it is already stopped', async () => {
      const { hypervisor, underTest, bootVm, followToEnd } = fixture();
      const vm = await bootVm();
      const power = async () => (await underTest.advanceUntil(hypervisor.vmState(vm))).power;
      expect(await followToEnd(hypervisor.shutdownVm(vm, 120_000))).toMatchObject({
        succeeded: true,
      });
      expect(await power()).toBe('stopped');
      expect(await followToEnd(hypervisor.shutdownVm(vm, 1_000))).toMatchObject({
        succeeded: true,
      });
      expect(await followToEnd(hypervisor.stopVm(vm))).toMatchObject({ succeeded: true });
      await followToEnd(hypervisor.startVm(vm));
      expect(await power()).toBe('running');
      expect(await followToEnd(hypervisor.stopVm(vm))).toMatchObject({ succeeded: true });
      expect(await power()).toBe('stopped');
    });

    it('stops a VM whose guest does not shut down within the timeout', async () => {
      const { hypervisor, underTest, createVm, followToEnd } = fixture();
      // The disk is empty, so no guest handles the request.
      const vm = await createVm();
      await followToEnd(hypervisor.startVm(vm));
      expect(await followToEnd(hypervisor.shutdownVm(vm, 5_000))).toMatchObject({
        succeeded: true,
      });
      expect(await underTest.advanceUntil(hypervisor.vmState(vm))).toMatchObject({
        power: 'stopped',
      });
    });
  });

  describe('destroyVm', () => {
    it('destroys a stopped VM, resolves if it does not exist, and refuses a running one', async () => {
      const { hypervisor, underTest, createVm, followToEnd } = fixture();
      const vm = await createVm();
      await followToEnd(hypervisor.startVm(vm));
      await expect(underTest.advanceUntil(hypervisor.destroyVm(vm))).rejects.toMatchObject({
        class: 'Conflict',
      });
      await followToEnd(hypervisor.stopVm(vm));
      expect(await followToEnd(hypervisor.destroyVm(vm))).toMatchObject({ succeeded: true });
      const notFound = { class: 'NotFound', code: 'VM_NOT_FOUND' };
      await expect(underTest.advanceUntil(hypervisor.vmConfig(vm))).rejects.toMatchObject(notFound);
      await expect(underTest.advanceUntil(hypervisor.vmState(vm))).rejects.toMatchObject(notFound);
      await expect(underTest.advanceUntil(hypervisor.destroyVm(vm))).resolves.toBeUndefined();
      const view = await underTest.advanceUntil(hypervisor.view());
      expect(view.takenVmIds).not.toContain(vm.vmId);
    });
  });
}
