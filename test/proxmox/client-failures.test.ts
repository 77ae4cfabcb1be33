// SPDX-License-Identifier: Apache-2.0
// Client behaviour that the contract suite does not cover: offline hosts, locks, permissions, many requests.
import { describe, expect, it } from 'vitest';
import type { TaskRef } from '../../src/ports/hypervisor.ts';
import { TaskFollower } from '../../src/proxmox/index.ts';
import {
  type SimulatedRegion,
  simulatedRegion,
  TEMPLATE,
  threeHostCluster,
  vmOrder,
} from './simulated-region.ts';

function followToEnd({ hypervisor, clock, settled }: SimulatedRegion, task: TaskRef) {
  const follower = new TaskFollower(hypervisor, clock);
  return settled(follower.follow(task, { timeoutMs: 3_600_000 }));
}

async function createVm(region: SimulatedRegion, vmId: number, host = 'pve1') {
  const task = await region.settled(region.hypervisor.createVm(vmOrder(vmId, host)));
  expect(await followToEnd(region, task)).toMatchObject({ succeeded: true });
  return { vmId, host };
}

describe('the client and an offline host', () => {
  it('uses another endpoint and reports VMs of the offline host as unknown, not missing', async () => {
    const region = simulatedRegion();
    const { sim, hypervisor, settled } = region;
    const vm = await createVm(region, 200);
    sim.externalChanges.hostDown('pve1');
    await region.clock.advance(20_000);
    const view = await settled(hypervisor.view());
    expect(view.hosts.find((host) => host.name === 'pve1')?.online).toBe(false);
    expect(view.vms.find((one) => one.vmId === 200)?.power).toBe('unknown');
    for (const read of [() => hypervisor.vmConfig(vm), () => hypervisor.guestIsUp(vm)]) {
      await expect(settled<unknown>(read())).rejects.toMatchObject({
        class: expect.stringMatching(/^(Unreachable|TimedOut)$/),
      });
    }
    sim.externalChanges.hostUp('pve1');
    await region.clock.advance(20_000);
    await expect(settled(hypervisor.vmConfig(vm))).resolves.toMatchObject({ name: 'vm-200' });
  });

  it('sends a create request once when the host fails after the work', async () => {
    const region = simulatedRegion();
    const { sim, hypervisor, settled } = region;
    sim.faults.add({ endpoint: 'POST /nodes/{node}/qemu', kind: 'host-down-after' });
    await expect(settled(hypervisor.createVm(vmOrder(201)))).rejects.not.toMatchObject({
      facts: { requestSent: false },
    });
    const sent = region.transport.requests.filter((request) => request.method === 'POST');
    expect(sent).toHaveLength(1);
  });

  it('reads without quorum and reports PVE_NO_QUORUM on writes', async () => {
    const region = simulatedRegion();
    const vm = await createVm(region, 202);
    region.sim.externalChanges.setQuorum(false);
    await expect(region.settled(region.hypervisor.vmConfig(vm))).resolves.toBeDefined();
    const work = region.hypervisor.createVm(vmOrder(203));
    await expect(region.settled(work)).rejects.toMatchObject({ code: 'PVE_NO_QUORUM' });
  });
});

describe('the client and external changes', () => {
  it('reports the lock name in responses and in failed tasks', async () => {
    const region = simulatedRegion();
    const { sim, hypervisor, settled } = region;
    const vm = await createVm(region, 210);
    sim.externalChanges.setOption(210, 'lock', 'backup');
    const locked = { code: 'VM_LOCKED', facts: { lock: 'backup' } };
    const { digest } = await settled(hypervisor.vmConfig(vm));
    const change = hypervisor.setDescription(vm, 'text', { digest });
    await expect(settled(change)).rejects.toMatchObject(locked);
    const start = await settled(hypervisor.startVm(vm));
    expect(await followToEnd(region, start)).toMatchObject({ succeeded: false, failure: locked });
  });

  it('does not destroy a protected VM', async () => {
    const region = simulatedRegion();
    const vm = await createVm(region, 211);
    region.sim.externalChanges.setOption(211, 'protection', '1');
    const failure = await region
      .settled(region.hypervisor.destroyVm(vm))
      .then(async (task) => (await followToEnd(region, task!)).failure)
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'VM_LOCKED', hint: expect.stringContaining('protect') });
  });

  it('reports VM_CHANGED when it starts a VM on the host that it left', async () => {
    const region = simulatedRegion();
    const { sim, hypervisor, settled } = region;
    const vm = await createVm(region, 212);
    sim.externalChanges.migrate(212, 'pve3');
    const start = await settled(hypervisor.startVm(vm));
    const end = await followToEnd(region, start);
    expect(end).toMatchObject({ succeeded: false, failure: { code: 'VM_CHANGED' } });
    await settled(hypervisor.view());
    const again = await settled(hypervisor.startVm(vm));
    expect(await followToEnd(region, again)).toMatchObject({ succeeded: true });
  });
});

describe('client authentication and permissions', () => {
  it('reports the missing privilege and its path', async () => {
    const cluster = threeHostCluster();
    const secret = '00000000-0000-4000-8000-000000000002';
    const region = simulatedRegion(
      {
        cluster: {
          ...cluster,
          users: [
            ...(cluster.users ?? []),
            { id: 'poor@pve', tokens: [{ id: 'sim', secret, privsep: false }] },
          ],
          acl: [...(cluster.acl ?? []), { path: '/', role: 'PVEAuditor', user: 'poor@pve' }],
        },
      },
      { credentials: { kind: 'token', id: 'poor@pve!sim', secret: () => secret } },
    );
    const { hypervisor, settled } = region;
    await expect(settled(hypervisor.startVm(TEMPLATE))).rejects.toMatchObject({
      code: 'PERMISSION_MISSING',
      facts: { path: '/vms/9000', privilege: 'VM.PowerMgmt' },
    });
    await expect(settled(hypervisor.deleteVolume('pve1', 'local:iso/x.iso'))).rejects.toMatchObject(
      { code: 'PERMISSION_MISSING', hint: expect.stringContaining('Datastore.Allocate') },
    );
    const privileges = await settled(hypervisor.permissions('/vms/9000'));
    expect(privileges).toContain('VM.Audit');
    expect(privileges).not.toContain('VM.PowerMgmt');
  });

  /** A region whose credentials have all of these privileges on / except one. */
  function regionWithout(missing: string) {
    const all =
      'VM.Clone VM.Allocate VM.Audit VM.Config.Disk VM.Config.Options Datastore.AllocateSpace Datastore.Audit Sys.Audit SDN.Use';
    const cluster = threeHostCluster();
    const secret = '00000000-0000-4000-8000-000000000002';
    const privileges = all.split(' ').filter((one) => one !== missing);
    const user = { id: 'poor@pve', tokens: [{ id: 'sim', secret, privsep: false }] };
    return simulatedRegion(
      {
        cluster: {
          ...cluster,
          users: [...(cluster.users ?? []), user],
          roles: [...(cluster.roles ?? []), { id: 'Poor', privs: privileges }],
          acl: [...(cluster.acl ?? []), { path: '/', role: 'Poor', user: 'poor@pve' }],
        },
      },
      { credentials: { kind: 'token', id: 'poor@pve!sim', secret: () => secret } },
    );
  }

  it.each([
    ['VM.Clone', '/vms/9000'],
    ['VM.Allocate', '/vms/200'],
    ['Datastore.AllocateSpace', '/storage/local-lvm'],
  ])('a refused clone names %s on %s', async (privilege, path) => {
    const { hypervisor, settled } = regionWithout(privilege);
    const order = {
      vmId: 200,
      host: TEMPLATE.host,
      source: TEMPLATE,
      linked: false,
      storage: 'local-lvm',
      name: 'k8s-1',
      description: 'marker',
    };
    const refusal = { code: 'PERMISSION_MISSING', facts: { path, privilege } };
    await expect(settled(hypervisor.cloneVm(order))).rejects.toMatchObject({
      ...refusal,
      message: expect.stringContaining(privilege) as unknown,
    });
    const linked = { ...order, linked: true };
    await expect(settled(hypervisor.cloneVm(linked))).rejects.toMatchObject(refusal);
  });

  it('sends a wrong secret only once', async () => {
    const region = simulatedRegion(
      {},
      { credentials: { kind: 'token', id: 'scaler@pve!sim', secret: () => 'wrong' } },
    );
    await expect(region.settled(region.hypervisor.view())).rejects.toMatchObject({
      code: 'CREDENTIALS_REFUSED',
    });
    expect(region.transport.requests).toHaveLength(1);
  });

  it('renews the ticket of a password login after it expired', async () => {
    const region = simulatedRegion(
      {},
      { credentials: { kind: 'password', user: 'scaler@pve', password: () => 'simulated' } },
    );
    const vm = await createVm(region, 220);
    for (const hours of [1, 1.5, 3]) {
      await region.clock.advance(hours * 3_600_000);
      const { digest } = await region.settled(region.hypervisor.vmConfig(vm));
      const change = region.hypervisor.setDescription(vm, `after ${hours} h`, { digest });
      await region.settled(change);
    }
    await expect(region.settled(region.hypervisor.vmConfig(vm))).resolves.toMatchObject({
      description: 'after 3 h',
    });
  });
});

describe('the client under load', () => {
  it('clones twenty VMs concurrently: each succeeds or fails with a retryable error', async () => {
    const region = simulatedRegion();
    const { hypervisor, settled } = region;
    const follower = new TaskFollower(hypervisor, region.clock);
    const one = async (vmId: number) => {
      const clone = { vmId, host: 'pve1', name: `c-${vmId}`, description: 'm', linked: true };
      const task = await hypervisor.cloneVm({ ...clone, source: TEMPLATE });
      return follower.follow(task, { timeoutMs: 3_600_000 });
    };
    const ids = Array.from({ length: 20 }, (_, index) => 300 + index);
    const ends = await settled(Promise.all(ids.map((vmId) => one(vmId))));
    const failed = ends.filter((end) => !end.succeeded);
    for (const end of failed) expect(end.failure?.retry).toBe('backoff');
    const view = await settled(hypervisor.view());
    expect(view.takenVmIds.filter((vmId) => ids.includes(vmId))).toHaveLength(
      ids.length - failed.length,
    );
  });

  it('sends one request per view regardless of the number of stopped VMs', async () => {
    const cluster = threeHostCluster();
    const resting = Array.from({ length: 200 }, (_, index) => ({
      id: 1_000 + index,
      host: `pve${(index % 3) + 1}`,
      config: { name: `rest-${index}`, cores: '1', memory: '512' },
    }));
    const vms = [...(cluster.vms ?? []), ...resting];
    const region = simulatedRegion({ cluster: { ...cluster, vms } });
    await region.clock.advance(15_000);
    await region.settled(region.hypervisor.view());
    const before = region.transport.requests.length;
    for (let pass = 0; pass < 10; pass += 1) await region.settled(region.hypervisor.view());
    expect(region.transport.requests.length - before).toBe(10);
  });
});
