// SPDX-License-Identifier: Apache-2.0
import { hypervisorContract } from '../../src/ports/contract/hypervisor.contract.ts';
import { CONTAINER, IMAGE, TEMPLATE } from './simulated-region.ts';
import { sshRegion } from './ssh-region.ts';

const ENDPOINT = {
  createVm: 'POST /nodes/{node}/qemu',
  startVm: 'POST /nodes/{node}/qemu/{vmid}/status/start',
  destroyVm: 'DELETE /nodes/{node}/qemu/{vmid}',
} as const;

for (const version of ['9.2', '8.4'] as const) {
  hypervisorContract(`client over SSH on the simulator, ${version}`, () => {
    const { sim, clock, hypervisor, settled } = sshRegion({ version });
    return Promise.resolve({
      hypervisor,
      advanceUntil: settled,
      advance: (ms: number) => clock.advance(ms),
      hosts: ['pve1', 'pve2'] as const,
      storages: { disks: 'local-lvm', isos: 'local', images: 'local' },
      template: TEMPLATE,
      container: CONTAINER,
      image: IMAGE,
      dropResponse: (method: keyof typeof ENDPOINT) => {
        sim.faults.add({ endpoint: ENDPOINT[method], kind: 'response-lost' });
      },
      move: (vmId: number, host: string) => sim.externalChanges.migrate(vmId, host),
      cleanup: () => hypervisor.close(),
    });
  });
}
