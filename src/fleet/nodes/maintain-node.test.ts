// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { vmProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import { Unreachable } from '../../ports/errors.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import {
  aJoiningPool,
  aJoiningSeed,
  aJoiningTestFleet,
  aReadyMachine,
  type JoiningTestFleet,
  joiningSettings,
  onlyMachine,
} from '../testing/joining-test-fleet.ts';
import { aPool, REGION, someSettings } from '../testing/settings.ts';
import {
  machinesIn,
  onePass,
  phasesIn,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

function aTestFleetWithoutJoin(): JoiningTestFleet {
  return aJoiningTestFleet(someSettings([aPool({ joins: false })]));
}

async function aMachine({ fleet, store, clock }: JoiningTestFleet) {
  await fleet.scaleTo('workers', 1, REASON);
  await untilAtRest(fleet, { store, clock });
  return currentMachine(store);
}

async function currentMachine(store: JoiningTestFleet['store']) {
  const [machine] = await machinesIn(store);
  if (machine?.placement === undefined) throw new Error('there is no placed machine');
  return { ...machine, placement: machine.placement };
}

async function registerNode(
  testFleet: JoiningTestFleet,
  systemUuid: string,
  overrides: Partial<ClusterNode>,
): Promise<void> {
  const createdAt = testFleet.clock.now();
  testFleet.cluster.state.putNode(
    aClusterNode({ name: 'talos-1', systemUuid, ready: true, createdAt, ...overrides }),
  );
  for (let pass = 0; pass < 3; pass += 1) {
    await onePass(testFleet.fleet, { store: testFleet.store, clock: testFleet.clock });
  }
}

describe('maintainNode, in a pool with join settings', () => {
  it('deletes a ready machine whose Node has been gone for nodeLostAfterMs, and keeps it while the Node is only NotReady', async () => {
    const testFleet = aJoiningTestFleet();
    const { id, placement } = await aReadyMachine(testFleet);
    testFleet.guests.behaviour = { neverReady: true };
    await testFleet.clock.advance(30 * 60_000);
    await runPasses(testFleet, 3);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
    testFleet.guests.behaviour = { neverRegisters: true };
    testFleet.cluster.state.removeNode(placement.name);
    await runPasses(testFleet, 3);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
    await testFleet.clock.advance(6 * 60_000);
    await untilAtRest(testFleet.fleet, testFleet);
    const gone = (await machinesIn(testFleet.store)).find((machine) => machine.id === id);
    expect(gone).toMatchObject({
      phase: 'gone',
      deletionReason: expect.stringMatching(/Node/) as unknown,
    });
  });

  it('waits anew for a missing Node after Kubernetes could not be read', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement } = await aReadyMachine(testFleet);
    testFleet.guests.behaviour = { neverRegisters: true };
    testFleet.cluster.state.removeNode(placement.name);
    await runPasses(testFleet, 3);
    testFleet.cluster.disconnect();
    await testFleet.clock.advance(10 * 60_000);
    await runPasses(testFleet, 3);
    testFleet.cluster.reconnect();
    await runPasses(testFleet, 3);
    await testFleet.clock.advance(4 * 60_000);
    await runPasses(testFleet, 3);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
    await testFleet.clock.advance(2 * 60_000);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toContain('gone');
  });

  it('does not delete a machine whose Node has just disappeared, even with a lostAfterMs of 0', async () => {
    const testFleet = aJoiningTestFleet(joiningSettings({ lostAfterMs: 0 }));
    const { id, placement } = await aReadyMachine(testFleet);
    testFleet.guests.behaviour = { neverRegisters: true };
    testFleet.cluster.state.removeNode(placement.name);
    await runPasses(testFleet, 5);
    expect((await onlyMachine(testFleet, 'ready')).id).toBe(id);
  });

  it.each([
    ['a new list contains it', 0],
    ['a new list cannot be read', 3],
  ])('keeps a machine whose Node is missing in the watch while %s', async (_what, failures) => {
    const testFleet = aJoiningTestFleet();
    const { id } = await aReadyMachine(testFleet);
    const view = testFleet.cluster.view.bind(testFleet.cluster);
    testFleet.cluster.view = async () => ({ ...(await view()), nodes: [] });
    await runPasses(testFleet, 2);
    await testFleet.clock.advance(6 * 60_000);
    const refusal = new Unreachable('KUBERNETES_UNREACHABLE', 'connection refused');
    for (let failure = 0; failure < failures; failure += 1) {
      testFleet.cluster.failNext('refresh', refusal);
    }
    await runPasses(testFleet, 3);
    expect((await onlyMachine(testFleet, 'ready')).id).toBe(id);
    expect(testFleet.cluster.calls.some(({ method }) => method === 'refresh')).toBe(true);
  });
});

describe('maintainNode, in a pool without join settings', () => {
  it('a machine becomes ready without a Node, and its Node is recorded once it appears', async () => {
    const testFleet = aTestFleetWithoutJoin();
    const machine = await aMachine(testFleet);
    expect(machine.phase).toBe('ready');
    await registerNode(testFleet, machine.id, { providerId: 'talos://talos-1' });
    expect(await currentMachine(testFleet.store)).toMatchObject({
      phase: 'ready',
      nodeName: 'talos-1',
      providerId: 'talos://talos-1',
    });
  });

  it('sets the provider id of a Node that has none', async () => {
    const testFleet = aTestFleetWithoutJoin();
    const { id, placement } = await aMachine(testFleet);
    await registerNode(testFleet, id, { providerId: '' });
    const providerId = vmProviderId(REGION, placement.vmId);
    expect(testFleet.cluster.state.nodes.get('talos-1')?.providerId).toBe(providerId);
    expect(await currentMachine(testFleet.store)).toMatchObject({ providerId });
  });

  it('a machine whose guest agent does not answer becomes ready when its Node is Ready', async () => {
    const testFleet = aTestFleetWithoutJoin();
    testFleet.hypervisor.guestIsUp = () => Promise.resolve(false);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    for (let pass = 0; pass < 20; pass += 1) {
      await onePass(testFleet.fleet, { store: testFleet.store, clock: testFleet.clock });
    }
    const { id, phase } = await currentMachine(testFleet.store);
    expect(phase).toBe('booting');
    await registerNode(testFleet, id, { providerId: 'talos://talos-1' });
    expect(await currentMachine(testFleet.store)).toMatchObject({
      phase: 'ready',
      providerId: 'talos://talos-1',
    });
  });

  it('keeps a machine whose Node disappears, and deletes the Node together with the machine', async () => {
    const testFleet = aTestFleetWithoutJoin();
    const { id } = await aMachine(testFleet);
    await registerNode(testFleet, id, { providerId: 'talos://talos-1' });
    testFleet.cluster.state.nodes.delete('talos-1');
    for (let minute = 0; minute < 10; minute += 1) {
      await testFleet.clock.advance(60_000);
      await onePass(testFleet.fleet, { store: testFleet.store, clock: testFleet.clock });
    }
    expect((await currentMachine(testFleet.store)).phase).toBe('ready');
    await registerNode(testFleet, id, { providerId: 'talos://talos-1' });
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, { store: testFleet.store, clock: testFleet.clock });
    expect(testFleet.cluster.state.nodes.size).toBe(0);
  });
});

describe('maintainNode, after Proxmox moved the VM to another host', () => {
  const ZONE = 'topology.kubernetes.io/zone';

  async function migrate(
    pool: Partial<ReturnType<typeof aJoiningPool>>,
    settings: Parameters<typeof someSettings>[1] = {},
  ) {
    const testFleet = aJoiningTestFleet(someSettings([aJoiningPool(pool)], settings));
    const { placement } = await aReadyMachine(testFleet);
    const target = placement.host === 'pve3' ? 'pve2' : 'pve3';
    testFleet.hypervisor.move(placement.vmId, target);
    await runPasses(testFleet, 4);
    const zone = () => testFleet.cluster.state.nodes.get(placement.name)?.labels[ZONE];
    const recorded = async () =>
      (await testFleet.store.journal.read()).filter(({ reason }) => reason === 'ZoneOutdated');
    return { testFleet, placement, target, zone, recorded };
  }

  it('reports the old zone once by default, and keeps it', async () => {
    const { placement, target, zone, recorded } = await migrate({});
    expect(zone()).toBe(placement.host);
    expect(await recorded()).toEqual([
      expect.objectContaining({
        message: expect.stringContaining(
          `node ${placement.name} has zone ${placement.host}, but its VM is on host ${target}`,
        ),
      }),
    ]);
  });

  it('changes the zone with placement.zoneOnMigration update, again when a kubelet restored it, not every pass', async () => {
    const placement = { ...aJoiningPool().placement, zoneOnMigration: 'update' } as const;
    const { testFleet, target, zone, ...migrated } = await migrate({ placement });
    expect(zone()).toBe(target);
    const { name, host } = migrated.placement;
    const labels = testFleet.cluster.state.nodes.get(name)?.labels ?? {};
    testFleet.cluster.state.updateNode(name, { labels: { ...labels, [ZONE]: host } });
    await runPasses(testFleet, 3);
    expect(zone()).toBe(host);
    await testFleet.clock.advance(10 * 60_000);
    testFleet.cluster.state.updateNode(name, { labels: { ...labels, [ZONE]: host } });
    await runPasses(testFleet, 3);
    expect(zone()).toBe(target);
  });

  it('leaves the zone to a cloud controller manager', async () => {
    const { testFleet, placement, recorded } = await migrate({}, { cloudController: true });
    expect(testFleet.cluster.state.nodes.get(placement.name)?.labels[ZONE]).toBe(placement.host);
    expect(await recorded()).toEqual([]);
  });

  it('adds no zone to a Node without one', async () => {
    const { testFleet, placement, zone } = await migrate({
      placement: { ...aJoiningPool().placement, zoneOnMigration: 'update' },
    });
    const { [ZONE]: _zone, ...labels } =
      testFleet.cluster.state.nodes.get(placement.name)?.labels ?? {};
    testFleet.cluster.state.updateNode(placement.name, { labels });
    await testFleet.clock.advance(11 * 60_000);
    await runPasses(testFleet, 3);
    expect(zone()).toBeUndefined();
  });

  it('keeps a zone that the pool sets itself', async () => {
    const pool = aJoiningPool();
    const placement = { ...pool.placement, zoneOnMigration: 'update' } as const;
    const seed = aJoiningSeed();
    const registration = { ...seed.registration, labels: { [ZONE]: 'rack-1' } };
    const { zone, recorded } = await migrate({ placement, seed: { ...seed, registration } });
    expect(zone()).toBe('rack-1');
    expect(await recorded()).toEqual([]);
  });
});
