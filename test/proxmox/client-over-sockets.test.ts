// SPDX-License-Identifier: Apache-2.0
// The client and the simulator over real sockets.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import type { Hypervisor, TaskRef } from '../../src/ports/hypervisor.ts';
import { createProxmoxHypervisor, TaskFollower } from '../../src/proxmox/index.ts';
import { createProxmoxSim, type ServedSim, serveProxmoxSim } from '../../src/sim/proxmox/index.ts';
import { systemClock as clock, openHttpTransport } from '../../src/system/index.ts';
import { CREDENTIALS, threeHostCluster, vmOrder } from './simulated-region.ts';

describe.each([false, true])('the client over sockets, TLS: %s', (tls) => {
  let served: ServedSim;
  let hypervisor: Hypervisor;

  beforeEach(async () => {
    const random = new SeededRandom(5);
    const sim = createProxmoxSim({ cluster: threeHostCluster(), clock, random, speed: 100 });
    served = await serveProxmoxSim(sim, { listen: '127.0.0.1:0', tls });
    const pins = { kind: 'fingerprints', sha256: [served.fingerprint ?? ''] } as const;
    hypervisor = createProxmoxHypervisor({
      region: 'sim',
      endpoints: [served.url],
      credentials: CREDENTIALS,
      transport: await openHttpTransport(tls ? { tls: pins } : {}),
      clock,
      random,
    });
  });

  afterEach(async () => {
    await hypervisor.close();
    await served.close();
  });

  it('creates a VM, uploads and deletes its seed ISO, and destroys the VM', async () => {
    const follower = new TaskFollower(hypervisor, clock);
    const end = async (task: Promise<TaskRef | undefined>) => {
      const started = await task;
      if (started === undefined) throw new Error('the request returned no task');
      return follower.follow(started, { timeoutMs: 240_000 });
    };
    const vm = { vmId: 230, host: 'pve1' };
    expect(await end(hypervisor.createVm(vmOrder(230)))).toMatchObject({ succeeded: true });
    const bytes = new Uint8Array(3 * 2 ** 20).fill(1);
    const iso = { host: 'pve1', storage: 'local', name: 'seed-230.iso', bytes };
    expect(await end(hypervisor.uploadIso(iso))).toMatchObject({ succeeded: true });
    expect(await hypervisor.volumes('pve1', 'local', 'iso')).toContainEqual(
      expect.objectContaining({ id: 'local:iso/seed-230.iso', bytes: bytes.length }),
    );
    await hypervisor.deleteVolume('pve1', 'local:iso/seed-230.iso');
    expect(await end(hypervisor.destroyVm(vm))).toMatchObject({ succeeded: true });
  });

  it('reads errors from the reason phrase while the server closes each connection', async () => {
    for (let vmId = 240; vmId < 250; vmId += 1) {
      await expect(hypervisor.vmConfig({ vmId, host: 'pve1' })).rejects.toMatchObject({
        code: 'VM_NOT_FOUND',
      });
    }
  });
});
