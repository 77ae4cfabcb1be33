// SPDX-License-Identifier: Apache-2.0
// What the contract cannot ask of every implementation: hosts that die, locks, rights, crowds.
import { describe, expect, it } from 'vitest';
import { TaskFollower } from '../../src/proxmox/index.ts';
import {
  aCluster,
  anOrder,
  type SimulatedRegion,
  simulatedRegion,
  TEMPLATE,
} from './simulated-region.ts';

function ended({ hypervisor, clock, settled }: SimulatedRegion, task: { upid: string }) {
  const follower = new TaskFollower(hypervisor, clock);
  return settled(follower.follow(task, { timeoutMs: 3_600_000 }));
}

async function created(region: SimulatedRegion, vmId: number, host = 'pve1') {
  const task = await region.settled(region.hypervisor.createVm(anOrder(vmId, host)));
  expect(await ended(region, task)).toMatchObject({ succeeded: true });
  return { vmId, host };
}

describe('a host that dies', () => {
  it('is left for another endpoint, and its VMs are not called gone', async () => {
    const region = simulatedRegion();
    const { sim, hypervisor, settled } = region;
    const vm = await created(region, 200);
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

  it('after it has done the work, and before it answered, has done it once', async () => {
    const region = simulatedRegion();
    const { sim, hypervisor, settled } = region;
    sim.faults.add({ endpoint: 'POST /nodes/{node}/qemu', kind: 'host-down-after' });
    await expect(settled(hypervisor.createVm(anOrder(201)))).rejects.not.toMatchObject({
      facts: { requestSent: false },
    });
    const asked = region.transport.requests.filter((request) => request.method === 'POST');
    expect(asked).toHaveLength(1);
  });

  it('leaves a cluster without quorum readable, not writable', async () => {
    const region = simulatedRegion();
    const vm = await created(region, 202);
    region.sim.externalChanges.setQuorum(false);
    await expect(region.settled(region.hypervisor.vmConfig(vm))).resolves.toBeDefined();
    const work = region.hypervisor.createVm(anOrder(203));
    await expect(region.settled(work)).rejects.toMatchObject({ code: 'PVE_NO_QUORUM' });
  });
});

describe('locks and people', () => {
  it('tells a lock by its name, in answers and in tasks', async () => {
    const region = simulatedRegion();
    const { sim, hypervisor, settled } = region;
    const vm = await created(region, 210);
    sim.externalChanges.setOption(210, 'lock', 'backup');
    const locked = { code: 'VM_LOCKED', facts: { lock: 'backup' } };
    const change = hypervisor.configureVm(vm, { set: { cores: '2' } });
    await expect(settled(change)).rejects.toMatchObject(locked);
    const start = await settled(hypervisor.startVm(vm));
    expect(await ended(region, start)).toMatchObject({ succeeded: false, failure: locked });
  });

  it('does not remove what a person protected', async () => {
    const region = simulatedRegion();
    const vm = await created(region, 211);
    region.sim.externalChanges.setOption(211, 'protection', '1');
    const failure = await region
      .settled(region.hypervisor.destroyVm(vm))
      .then(async (task) => (await ended(region, task!)).failure)
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'VM_LOCKED', hint: expect.stringContaining('protect') });
  });

  it('says that a VM started at the host it has left has changed, not that it is gone', async () => {
    const region = simulatedRegion();
    const { sim, hypervisor, settled } = region;
    const vm = await created(region, 212);
    sim.externalChanges.migrate(212, 'pve3');
    const start = await settled(hypervisor.startVm(vm));
    const end = await ended(region, start);
    expect(end).toMatchObject({ succeeded: false, failure: { code: 'VM_CHANGED' } });
    await settled(hypervisor.view());
    const again = await settled(hypervisor.startVm(vm));
    expect(await ended(region, again)).toMatchObject({ succeeded: true });
  });
});

describe('rights', () => {
  it('names what a token lacks', async () => {
    const cluster = aCluster();
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

  it('refuses a wrong secret, once', async () => {
    const region = simulatedRegion(
      {},
      { credentials: { kind: 'token', id: 'scaler@pve!sim', secret: () => 'wrong' } },
    );
    await expect(region.settled(region.hypervisor.view())).rejects.toMatchObject({
      code: 'CREDENTIALS_REFUSED',
    });
    expect(region.transport.requests).toHaveLength(1);
  });

  it('works by password for longer than a ticket lives', async () => {
    const region = simulatedRegion(
      {},
      { credentials: { kind: 'password', user: 'scaler@pve', password: () => 'simulated' } },
    );
    const vm = await created(region, 220);
    for (const hours of [1, 1.5, 3]) {
      await region.clock.advance(hours * 3_600_000);
      const change = { set: { description: `after ${hours} h` } };
      await region.settled(region.hypervisor.configureVm(vm, change));
    }
    await expect(region.settled(region.hypervisor.vmConfig(vm))).resolves.toMatchObject({
      description: 'after 3 h',
    });
  });
});

describe('crowds', () => {
  it('clones twenty at once: each there, or refused with a reason to try again', async () => {
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

  it('reads once per view, however many VMs rest', async () => {
    const cluster = aCluster();
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
    for (let turn = 0; turn < 10; turn += 1) await region.settled(region.hypervisor.view());
    expect(region.transport.requests.length - before).toBe(10);
  });
});
