// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Bench } from './hypervisor-bench.ts';

export function guestContract(bench: () => Bench): void {
  describe('power and guest', () => {
    it('starts once: a second start fails in its task', async () => {
      const { hypervisor, it: under, created, end } = bench();
      const vm = await created();
      expect(await end(hypervisor.startVm(vm))).toMatchObject({ succeeded: true });
      expect(await under.settled(hypervisor.vmState(vm))).toMatchObject({ power: 'running' });
      expect(await end(hypervisor.startVm(vm))).toMatchObject({
        succeeded: false,
        failure: { class: 'Conflict' },
      });
    });

    it('knows when the guest answers, what addresses it has, and runs a command in it', async () => {
      const { hypervisor, it: under, created, booted } = bench();
      const silent = await created();
      await expect(under.settled(hypervisor.guestIsUp(silent))).resolves.toBe(false);
      await expect(under.settled(hypervisor.guestInterfaces(silent))).rejects.toMatchObject({
        class: 'Unreachable',
        code: 'GUEST_AGENT_SILENT',
      });
      const vm = await booted();
      const interfaces = await under.settled(hypervisor.guestInterfaces(vm));
      const addresses = interfaces.flatMap((one) => one.addresses);
      expect(interfaces.map((one) => one.name)).not.toContain('lo');
      expect(addresses.every((address) => /\/\d+$/.test(address))).toBe(true);
      expect(addresses.some((address) => /^(127\.|::1|fe80|169\.254\.)/.test(address))).toBe(false);
      const command = { command: ['/bin/cat'], input: 'from stdin', timeoutMs: 60_000 };
      await expect(under.settled(hypervisor.guestExec(vm, command))).resolves.toEqual({
        exitCode: 0,
        output: 'from stdin',
        errorOutput: '',
      });
    });

    it('carries text in any language into the guest and out of it', async () => {
      const { hypervisor, it: under, booted } = bench();
      const vm = await booted();
      const input = 'naïve – Grüße, 日本語 ☃\n';
      const command = { command: ['/bin/cat'], input, timeoutMs: 60_000 };
      await expect(under.settled(hypervisor.guestExec(vm, command))).resolves.toMatchObject({
        exitCode: 0,
        output: input,
      });
    });

    it('shuts down, stops, and takes stopped for done', async () => {
      const { hypervisor, it: under, booted, end } = bench();
      const vm = await booted();
      const power = async () => (await under.settled(hypervisor.vmState(vm))).power;
      expect(await end(hypervisor.shutdownVm(vm, 120_000))).toMatchObject({ succeeded: true });
      expect(await power()).toBe('stopped');
      expect(await end(hypervisor.shutdownVm(vm, 1_000))).toMatchObject({ succeeded: true });
      expect(await end(hypervisor.stopVm(vm))).toMatchObject({ succeeded: true });
      await end(hypervisor.startVm(vm));
      expect(await power()).toBe('running');
      expect(await end(hypervisor.stopVm(vm))).toMatchObject({ succeeded: true });
      expect(await power()).toBe('stopped');
    });

    it('pulls the plug on a guest that does not shut down in time', async () => {
      const { hypervisor, it: under, created, end } = bench();
      // An empty disk: nobody in there hears the request.
      const vm = await created();
      await end(hypervisor.startVm(vm));
      expect(await end(hypervisor.shutdownVm(vm, 5_000))).toMatchObject({ succeeded: true });
      expect(await under.settled(hypervisor.vmState(vm))).toMatchObject({ power: 'stopped' });
    });
  });

  describe('destroying', () => {
    it('removes a stopped VM, once, and never a running one', async () => {
      const { hypervisor, it: under, created, end } = bench();
      const vm = await created();
      await end(hypervisor.startVm(vm));
      await expect(under.settled(hypervisor.destroyVm(vm))).rejects.toMatchObject({
        class: 'Conflict',
      });
      await end(hypervisor.stopVm(vm));
      expect(await end(hypervisor.destroyVm(vm))).toMatchObject({ succeeded: true });
      const gone = { class: 'NotFound', code: 'VM_NOT_FOUND' };
      await expect(under.settled(hypervisor.vmConfig(vm))).rejects.toMatchObject(gone);
      await expect(under.settled(hypervisor.vmState(vm))).rejects.toMatchObject(gone);
      await expect(under.settled(hypervisor.destroyVm(vm))).resolves.toBeUndefined();
      const view = await under.settled(hypervisor.view());
      expect(view.takenVmIds).not.toContain(vm.vmId);
    });
  });
}
