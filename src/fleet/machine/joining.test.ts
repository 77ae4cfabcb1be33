// SPDX-License-Identifier: Apache-2.0
// Machines that become Nodes: what is done for them, what is waited for, and what is never taken for theirs.
import { describe, expect, it } from 'vitest';
import { STARTUP_TAINT, VMID_LABEL } from '../../bootstrap/index.ts';
import { vmProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import { Unreachable } from '../../ports/errors.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import type { JoinSettings } from '../context/join-settings.ts';
import {
  aJoiningPool,
  aJoiningSeed,
  aJoiningTestFleet,
  type JoiningTestFleet,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import { REGION, someSettings } from '../testing/settings.ts';
import { aFleet, leftovers, machinesIn, onePass, untilAtRest, WHY } from '../testing/test-fleet.ts';

const GIB = 2 ** 30;

async function rounds(bench: JoiningTestFleet, count: number): Promise<void> {
  for (let round = 0; round < count; round += 1) await onePass(bench.fleet, bench);
}

async function aReadyMachine(bench: JoiningTestFleet) {
  await bench.fleet.scaleTo('workers', 1, WHY);
  await untilAtRest(bench.fleet, bench);
  const [machine] = await machinesIn(bench.store);
  if (machine?.placement === undefined) throw new Error('there is no machine');
  return { ...machine, placement: machine.placement };
}

async function phases({ store }: JoiningTestFleet): Promise<readonly string[]> {
  return (await machinesIn(store)).map(({ phase }) => phase);
}

async function reasons({ store }: JoiningTestFleet): Promise<readonly string[]> {
  return (await store.journal.read()).map(({ reason }) => reason);
}

/** A pool whose join is changed a little. */
function joinedBy(change: (join: JoinSettings) => JoinSettings) {
  const seed = aJoiningSeed();
  return someSettings([aJoiningPool({ seed: { ...seed, join: change(seed.join) } })]);
}

describe('a machine that joins', () => {
  it('is ready when its Node is; labels are set behind the startup taint', async () => {
    const bench = aJoiningTestFleet();
    const changes: string[] = [];
    bench.cluster.onCall = ({ method }) => {
      const [node] = bench.cluster.state.nodes.values();
      const isTainted = node?.taints.some(({ key }) => key === STARTUP_TAINT.key);
      if (['declareNode', 'changeNode'].includes(method)) {
        changes.push(`${method} ${isTainted === true ? 'tainted' : 'open'}`);
      }
    };
    const machine = await aReadyMachine(bench);
    const node = bench.cluster.state.nodes.get(machine.placement.name);
    expect(machine).toMatchObject({
      phase: 'ready',
      nodeName: machine.placement.name,
      nodeUid: node?.uid,
      providerId: vmProviderId(REGION, machine.placement.vmId),
    });
    expect(node?.labels).toMatchObject({
      tier: 'small',
      'node-role.kubernetes.io/worker': '',
      'autoscaler.proxmox/group': 'workers',
      [VMID_LABEL]: String(machine.placement.vmId),
    });
    expect(node?.taints).toEqual([]);
    expect(changes).toEqual(['declareNode tainted', 'changeNode tainted']);
    expect(leftovers(bench.hypervisor).isos).toEqual([]);
  });

  it('gets its provider id patched where its kubelet set none', async () => {
    const bench = aJoiningTestFleet();
    bench.guests.behaviour = { withoutProviderId: true };
    const { placement, providerId } = await aReadyMachine(bench);
    expect(providerId).toBe(vmProviderId(REGION, placement.vmId));
    expect(bench.cluster.state.nodes.get(placement.name)?.providerId).toBe(providerId);
  });

  it.each([
    ['the name of its size', { cpu: 4, memoryBytes: 8 * GIB, diskBytes: 80 * GIB }, 'large'],
    ["its pool's own size", undefined, 'small'],
    ['no name', { cpu: 3, memoryBytes: 8 * GIB, diskBytes: 80 * GIB }, undefined],
  ])('has %s as its instance type', async (_what, size, instanceType) => {
    const small = aJoiningPool().size;
    const instanceTypes = [
      { name: 'small', ...small },
      { name: 'large', cpu: 4, memoryBytes: 8 * GIB, diskBytes: 80 * GIB },
    ];
    const bench = aJoiningTestFleet(someSettings([aJoiningPool({ instanceTypes })]));
    await bench.fleet.scaleTo('workers', 1, size === undefined ? WHY : { ...WHY, size });
    await untilAtRest(bench.fleet, bench);
    const [node] = bench.cluster.state.nodes.values();
    expect(node?.labels['node.kubernetes.io/instance-type']).toBe(instanceType);
  });

  it('is told of by what its Node says, whatever the form', async () => {
    const bench = aJoiningTestFleet();
    bench.guests.behaviour = { withoutProviderId: true };
    bench.cluster.onCall = ({ method }) => {
      const [node] = bench.cluster.state.nodes.values();
      if (method === 'declareNode' && node?.providerId === '') {
        bench.cluster.state.updateNode(node.name, { providerId: `k3s://${node.name}` });
      }
    };
    await bench.fleet.scaleTo('workers', 1, WHY);
    await rounds(bench, 60);
    const [machine] = await machinesIn(bench.store);
    expect(machine).toMatchObject({ phase: 'ready', providerId: `k3s://${machine?.nodeName}` });
  });

  it('teaches what a node of its size offers to pods', async () => {
    const bench = aJoiningTestFleet();
    const { size } = await aReadyMachine(bench);
    const state = await bench.store.pools.get('workers');
    const key = `${size.cpu}x${size.memoryBytes}x${size.diskBytes}`;
    expect(state?.value.allocatable[key]).toMatchObject({
      cpuMilli: 2_000,
      memoryBytes: 4 * 2 ** 30,
      pods: 110,
    });
  });

  it('is checked against its pool, and what differs is told once', async () => {
    const bench = aJoiningTestFleet();
    bench.cluster.onCall = ({ method }) => {
      const [node] = bench.cluster.state.nodes.values();
      if (method === 'changeNode' && node !== undefined && node.labels['tier'] !== 'large') {
        bench.cluster.state.updateNode(node.name, { labels: { ...node.labels, tier: 'large' } });
      }
    };
    await aReadyMachine(bench);
    await rounds(bench, 3);
    const told = (await bench.store.journal.read()).filter(
      ({ reason }) => reason === 'NodeDiffers',
    );
    expect(told).toHaveLength(1);
    expect(told[0]?.message).toContain("label tier is 'large', not 'small'");
    expect(bench.cluster.state.events).toContainEqual(
      expect.objectContaining({ reason: 'NodeDiffers', type: 'Warning' }),
    );
  });

  it('leaves a label to whoever set it, says who, and opens all the same', async () => {
    const bench = aJoiningTestFleet();
    const role = 'node-role.kubernetes.io/worker';
    const label = (value: string) => {
      const [node] = bench.cluster.state.nodes.values();
      if (node === undefined || node.labels[role] === value) return;
      bench.cluster.state.updateNode(node.name, { labels: { ...node.labels, [role]: value } });
    };
    bench.cluster.onCall = ({ method }) => {
      if (method === 'declareNode') label('theirs');
    };
    await aReadyMachine(bench);
    await rounds(bench, 3);
    const node = () => [...bench.cluster.state.nodes.values()][0];
    expect(node()).toMatchObject({ labels: { [role]: 'theirs' }, taints: [] });
    const told = async () =>
      (await bench.store.journal.read())
        .filter(({ reason }) => reason === 'NodeDiffers')
        .map(({ message }) => message);
    expect(await told()).toHaveLength(1);
    expect((await told())[0]).toContain(`label ${role} is not set to '' because others owns it`);
    const asked = () => bench.cluster.calls.filter(({ method }) => method === 'declareNode').length;
    const before = asked();
    await rounds(bench, 3);
    expect(asked()).toBe(before);
    bench.cluster.onCall = undefined;
    label('changed again');
    await rounds(bench, 3);
    expect(asked()).toBe(before + 1);
    const { [role]: _theirs, ...labels } = node()?.labels ?? {};
    bench.cluster.state.updateNode(node()?.name ?? '', { labels });
    await rounds(bench, 2);
    expect(node()?.labels[role]).toBe('');
  });

  it('loses the labels that its pool no longer has, and none that others set', async () => {
    const bench = aJoiningTestFleet();
    const role = 'node-role.kubernetes.io/worker';
    const { placement } = await aReadyMachine(bench);
    const node = () => bench.cluster.state.nodes.get(placement.name);
    const theirs = 'node-role.kubernetes.io/theirs';
    const labels = { ...node()?.labels, [theirs]: '' };
    bench.cluster.state.updateNode(placement.name, { labels });
    const without = aFleet({ ...bench, settings: someSettings([]), seed: 9 });
    await onePass(without, bench);
    expect(node()?.labels).toMatchObject({ [role]: '', [theirs]: '' });
    const seed = aJoiningSeed();
    const registration = { ...seed.registration, labels: { tier: 'small' } };
    const settings = someSettings([aJoiningPool({ seed: { ...seed, registration } })]);
    const fleet = aFleet({ ...bench, settings, seed: 10 });
    for (let round = 0; round < 3; round += 1) await onePass(fleet, bench);
    expect(node()?.labels).toMatchObject({ tier: 'small', [theirs]: '' });
    expect(Object.keys(node()?.labels ?? {})).not.toContain(role);
  });

  it('is ready when its guest is up where there is no access to a cluster', async () => {
    const bench = aJoiningTestFleet();
    const settings = joinedBy((join) =>
      join.kind === 'none'
        ? join
        : { ...join, token: { kind: 'static', read: () => Promise.resolve('a-static-token') } },
    );
    const fleet = aFleet({ ...bench, cluster: undefined, settings, seed: 9 });
    await fleet.scaleTo('workers', 1, WHY);
    await untilAtRest(fleet, bench);
    expect(await phases(bench)).toEqual(['ready']);
  });
});

describe('a token', () => {
  it('is made for each machine, for an hour, in the group of its distribution', async () => {
    const bench = aJoiningTestFleet();
    await bench.fleet.scaleTo('workers', 2, WHY);
    await untilAtRest(bench.fleet, bench);
    expect(bench.cluster.state.tokens).toHaveLength(2);
    expect(bench.cluster.state.tokens[0]).toMatchObject({
      lifetimeMs: 3_600_000,
      groups: ['system:bootstrappers:k3s:default-node-token'],
      usages: ['authentication'],
    });
  });

  it('serves a second try, and is not made while the cluster does not answer', async () => {
    const bench = aJoiningTestFleet();
    bench.hypervisor.failNext('uploadIso', new Unreachable('PVE_UNREACHABLE', 'gone'));
    await aReadyMachine(bench);
    expect(bench.cluster.state.tokens).toHaveLength(1);
  });

  it('goes to the guest by standard input where the agent joins, and is not in the seed', async () => {
    const bench = aJoiningTestFleet(
      joinedBy((join) => (join.kind === 'k3s' ? { ...join, via: 'agent' } : join)),
    );
    const asked: { command: string; input: string }[] = [];
    let isSystemUp = false;
    bench.hypervisor.guestCommand = (_vm, { command, input = '' }) => {
      asked.push({ command: command.join(' '), input });
      const output = isSystemUp ? 'degraded\n' : 'starting\n';
      isSystemUp = true;
      return { exitCode: 0, output, errorOutput: '' };
    };
    const seeds: string[] = [];
    bench.hypervisor.onCall = () => {
      for (const { data } of bench.hypervisor.state.volumes.values()) {
        if (data !== undefined) seeds.push(new TextDecoder().decode(data));
      }
    };
    await bench.fleet.scaleTo('workers', 1, WHY);
    await rounds(bench, 30);
    const [token] = bench.cluster.state.tokens;
    const secret = token?.token.split('.')[1] ?? 'none';
    expect(bench.cluster.state.tokens).toHaveLength(1);
    expect(asked[0]?.command).toBe('systemctl is-system-running');
    expect(asked.at(-1)?.command).toBe('systemctl start --no-block pvescaler-join.service');
    expect(asked.some(({ input }) => input.includes(`::${token?.token}`))).toBe(true);
    expect(asked.map(({ command }) => command).join('\n')).not.toContain(secret);
    expect(seeds.length).toBeGreaterThan(0);
    expect(seeds.join('\n')).not.toContain(secret);
  });

  it('is not asked for without access to a cluster: the machine is not begun, and the pool says why', async () => {
    const bench = aJoiningTestFleet();
    const settings = joiningSettings();
    const fleet = aFleet({ ...bench, cluster: undefined, settings, seed: 9 });
    await fleet.scaleTo('workers', 1, WHY);
    for (let round = 0; round < 5; round += 1) await onePass(fleet, bench);
    expect(await phases(bench)).toEqual(['requested']);
    expect(await reasons(bench)).toContain('NoClusterAccess');
  });
});

describe('a Node that is not the machine’s', () => {
  it.each([
    ['of another UUID', { systemUuid: '99999999-0000-4000-8000-000000000000' }],
    ['older than the machine', { createdAt: Date.UTC(2020, 0, 1) }],
  ])('is never taken for it: %s', async (_what, overrides: Partial<ClusterNode>) => {
    const bench = aJoiningTestFleet();
    bench.guests.behaviour = { mute: true };
    await bench.fleet.scaleTo('workers', 1, WHY);
    await rounds(bench, 2);
    const [machine] = await machinesIn(bench.store);
    const { name = '', vmId = 0 } = machine?.placement ?? {};
    bench.cluster.state.putNode(
      aClusterNode({
        name,
        providerId: vmProviderId(REGION, vmId),
        createdAt: bench.clock.now(),
        ...overrides,
      }),
    );
    await rounds(bench, 30);
    expect(await phases(bench)).toEqual(['joining']);
    await bench.clock.advance(5 * 60_000);
    await untilAtRest(bench.fleet, bench);
    const [failed] = await machinesIn(bench.store);
    expect(failed).toMatchObject({ phase: 'failed', failure: { code: 'REGISTRATION_TIMED_OUT' } });
    expect(leftovers(bench.hypervisor)).toMatchObject({ vms: [], isos: [] });
    expect(bench.cluster.state.nodes.has(name)).toBe(true);
  });

  it('keeps its VM id: no new machine gets it', async () => {
    const bench = aJoiningTestFleet();
    for (const vmId of [1_250, 1_251, 1_252]) {
      bench.cluster.state.putNode(
        aClusterNode({ name: `old-${vmId}`, providerId: vmProviderId(REGION, vmId) }),
      );
    }
    const { placement } = await aReadyMachine(bench);
    expect(placement.vmId).toBe(1_253);
  });

  it('keeps its VM id by its label where its provider id is of another form', async () => {
    const bench = aJoiningTestFleet();
    const labels = { [VMID_LABEL]: '1250' };
    for (const [name, providerId] of Object.entries({
      old: 'k3s://old',
      other: vmProviderId(REGION, 1_251),
      elsewhere: vmProviderId('elsewhere', 1_252),
    })) {
      const own = name === 'elsewhere' ? { [VMID_LABEL]: '1252' } : labels;
      bench.cluster.state.putNode(aClusterNode({ name, providerId, labels: own }));
    }
    const { placement } = await aReadyMachine(bench);
    expect(placement.vmId).toBe(1_252);
  });
});

describe('a cluster that cannot be read', () => {
  it('decides nothing: nobody is begun, given up or missed', async () => {
    const bench = aJoiningTestFleet();
    const { placement } = await aReadyMachine(bench);
    bench.guests.behaviour = { mute: true };
    await bench.fleet.request('workers', 1, WHY);
    await rounds(bench, 25);
    expect(await phases(bench)).toEqual(expect.arrayContaining(['ready', 'joining']));
    bench.cluster.disconnect();
    bench.cluster.state.removeNode(placement.name);
    await bench.clock.advance(2 * 60_000);
    await bench.fleet.request('workers', 1, WHY);
    for (let minute = 0; minute < 30; minute += 1) {
      await bench.clock.advance(60_000);
      await rounds(bench, 1);
    }
    expect((await phases(bench)).toSorted()).toEqual(['joining', 'ready', 'requested']);
    bench.cluster.reconnect();
    bench.guests.behaviour = {};
    await untilAtRest(bench.fleet, bench);
    expect((await phases(bench)).filter((phase) => phase === 'ready')).toHaveLength(3);
  });

  it('costs no machine its life that was begun before it was noticed', async () => {
    const bench = aJoiningTestFleet();
    bench.cluster.disconnect();
    await bench.fleet.request('workers', 1, WHY);
    for (let minute = 0; minute < 30; minute += 1) {
      await rounds(bench, 3);
      await bench.clock.advance(60_000);
    }
    bench.cluster.reconnect();
    await untilAtRest(bench.fleet, bench);
    expect(await phases(bench)).toEqual(['ready']);
  });
});

describe('a ready machine', () => {
  it('whose Node is gone for long is lost; one that is only not ready is left alone', async () => {
    const bench = aJoiningTestFleet();
    const { id, placement } = await aReadyMachine(bench);
    bench.guests.behaviour = { neverReady: true };
    await bench.clock.advance(30 * 60_000);
    await rounds(bench, 3);
    expect(await phases(bench)).toEqual(['ready']);
    bench.guests.behaviour = { mute: true };
    bench.cluster.state.removeNode(placement.name);
    await rounds(bench, 3);
    expect(await phases(bench)).toEqual(['ready']);
    await bench.clock.advance(6 * 60_000);
    await untilAtRest(bench.fleet, bench);
    const gone = (await machinesIn(bench.store)).find((machine) => machine.id === id);
    expect(gone).toMatchObject({
      phase: 'gone',
      deletionReason: expect.stringMatching(/Node/) as unknown,
    });
  });
});

describe('a machine that goes', () => {
  it('takes its Node with it, after its VM', async () => {
    const bench = aJoiningTestFleet();
    const { placement } = await aReadyMachine(bench);
    const order: string[] = [];
    bench.cluster.onCall = ({ method }) => {
      if (method === 'deleteNode')
        order.push(`VMs left: ${leftovers(bench.hypervisor).vms.length}`);
    };
    await bench.fleet.scaleTo('workers', 0, WHY);
    await untilAtRest(bench.fleet, bench);
    expect(order).toEqual(['VMs left: 0']);
    expect(bench.cluster.state.nodes.has(placement.name)).toBe(false);
  });

  it('leaves its Node to the cloud controller where there is one', async () => {
    const bench = aJoiningTestFleet(joiningSettings({ cloudController: true }));
    const { placement } = await aReadyMachine(bench);
    await bench.fleet.scaleTo('workers', 0, WHY);
    await untilAtRest(bench.fleet, bench);
    await bench.clock.advance(10 * 60_000);
    await rounds(bench, 3);
    expect(bench.cluster.state.nodes.has(placement.name)).toBe(true);
  });

  it('waits for the cluster before it is over', async () => {
    const bench = aJoiningTestFleet();
    await aReadyMachine(bench);
    bench.cluster.disconnect();
    await bench.fleet.scaleTo('workers', 0, WHY);
    await rounds(bench, 30);
    expect(leftovers(bench.hypervisor).vms).toEqual([]);
    expect(await phases(bench)).toEqual(['deleting']);
    bench.cluster.reconnect();
    await untilAtRest(bench.fleet, bench);
    expect(await phases(bench)).toEqual(['gone']);
    expect(bench.cluster.state.nodes.size).toBe(0);
  });
});

describe('ghosts', () => {
  const ghost = (overrides: Partial<ClusterNode> = {}) =>
    aClusterNode({
      name: 'ghost',
      providerId: vmProviderId(REGION, 1_270),
      ready: false,
      labels: { 'autoscaler.proxmox/group': 'workers', [VMID_LABEL]: '1270' },
      ...overrides,
    });

  async function afterLong(node: ClusterNode, bench = aJoiningTestFleet()): Promise<boolean> {
    bench.cluster.state.putNode(node);
    await rounds(bench, 2);
    expect(bench.cluster.state.nodes.has(node.name)).toBe(true);
    await bench.clock.advance(6 * 60_000);
    await rounds(bench, 2);
    return bench.cluster.state.nodes.has(node.name);
  }

  it('are removed after they have been without a VM for long', async () => {
    expect(await afterLong(ghost())).toBe(false);
  });

  it.each([
    ['is ready', { ready: true }],
    ['has no group label', { labels: { [VMID_LABEL]: '1270' } }],
    [
      'says another VM id',
      { labels: { 'autoscaler.proxmox/group': 'workers', [VMID_LABEL]: '1' } },
    ],
    ['is of another region', { providerId: vmProviderId('elsewhere', 1_270) }],
    ['has another provider', { providerId: 'aws:///eu-west-1a/i-0123' }],
    [
      'has a VM',
      {
        providerId: vmProviderId(REGION, 9_001),
        labels: { 'autoscaler.proxmox/group': 'workers', [VMID_LABEL]: '9001' },
      },
    ],
  ])('are not those whose Node %s', async (_what, overrides: Partial<ClusterNode>) => {
    const guests = { settle: () => undefined };
    expect(await afterLong(ghost(overrides), { ...aJoiningTestFleet(), guests } as never)).toBe(
      true,
    );
  });

  it('are told by orphans', async () => {
    const bench = aJoiningTestFleet();
    bench.cluster.state.putNode(ghost());
    expect(await bench.fleet.orphans()).toMatchObject([{ kind: 'node-without-vm', what: 'ghost' }]);
  });

  it('stay while Proxmox cannot be read', async () => {
    const bench = aJoiningTestFleet();
    bench.cluster.state.putNode(ghost());
    await rounds(bench, 2);
    for (let minute = 0; minute < 8; minute += 1) {
      bench.hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'gone'));
      await bench.clock.advance(60_000);
      await rounds(bench, 1);
    }
    expect(bench.cluster.state.nodes.has('ghost')).toBe(true);
  });
});
