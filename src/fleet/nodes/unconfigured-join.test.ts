// SPDX-License-Identifier: Apache-2.0
// Machines that nobody tells to join: their image, or what they boot from the network, does it by itself. Their Nodes
// are theirs all the same.
import { describe, expect, it } from 'vitest';
import { vmProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import { aJoiningTestFleet, type JoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { aPool, REGION, someSettings } from '../testing/settings.ts';
import { machinesIn, onePass, untilAtRest, WHY } from '../testing/test-fleet.ts';

function aBenchWithoutRecipe(): JoiningTestFleet {
  return aJoiningTestFleet(someSettings([aPool({ joins: false })]));
}

async function aMachine({ fleet, store, clock }: JoiningTestFleet) {
  await fleet.scaleTo('workers', 1, WHY);
  await untilAtRest(fleet, { store, clock });
  return theMachine(store);
}

async function theMachine(store: JoiningTestFleet['store']) {
  const [machine] = await machinesIn(store);
  if (machine?.placement === undefined) throw new Error('there is no machine');
  return { ...machine, placement: machine.placement };
}

async function appears(
  bench: JoiningTestFleet,
  systemUuid: string,
  overrides: Partial<ClusterNode>,
): Promise<void> {
  const createdAt = bench.clock.now();
  bench.cluster.state.putNode(
    aClusterNode({ name: 'talos-1', systemUuid, ready: true, createdAt, ...overrides }),
  );
  for (let round = 0; round < 3; round += 1) {
    await onePass(bench.fleet, { store: bench.store, clock: bench.clock });
  }
}

describe('a machine that joins by itself', () => {
  it('is ready without a Node, and known by its Node once there is one', async () => {
    const bench = aBenchWithoutRecipe();
    const machine = await aMachine(bench);
    expect(machine.phase).toBe('ready');
    await appears(bench, machine.id, { providerId: 'talos://talos-1' });
    expect(await theMachine(bench.store)).toMatchObject({
      phase: 'ready',
      nodeName: 'talos-1',
      providerId: 'talos://talos-1',
    });
  });

  it('gets its provider id where nobody set one', async () => {
    const bench = aBenchWithoutRecipe();
    const { id, placement } = await aMachine(bench);
    await appears(bench, id, { providerId: '' });
    const providerId = vmProviderId(REGION, placement.vmId);
    expect(bench.cluster.state.nodes.get('talos-1')?.providerId).toBe(providerId);
    expect(await theMachine(bench.store)).toMatchObject({ providerId });
  });

  it('is ready by its Node where no guest agent answers', async () => {
    const bench = aBenchWithoutRecipe();
    bench.hypervisor.guestIsUp = () => Promise.resolve(false);
    await bench.fleet.scaleTo('workers', 1, WHY);
    for (let round = 0; round < 20; round += 1) {
      await onePass(bench.fleet, { store: bench.store, clock: bench.clock });
    }
    const { id, phase } = await theMachine(bench.store);
    expect(phase).toBe('booting');
    await appears(bench, id, { providerId: 'talos://talos-1' });
    expect(await theMachine(bench.store)).toMatchObject({
      phase: 'ready',
      providerId: 'talos://talos-1',
    });
  });

  it('is not given up when its Node goes, and takes its Node with it when it goes', async () => {
    const bench = aBenchWithoutRecipe();
    const { id } = await aMachine(bench);
    await appears(bench, id, { providerId: 'talos://talos-1' });
    bench.cluster.state.nodes.delete('talos-1');
    for (let minute = 0; minute < 10; minute += 1) {
      await bench.clock.advance(60_000);
      await onePass(bench.fleet, { store: bench.store, clock: bench.clock });
    }
    expect((await theMachine(bench.store)).phase).toBe('ready');
    await appears(bench, id, { providerId: 'talos://talos-1' });
    await bench.fleet.scaleTo('workers', 0, WHY);
    await untilAtRest(bench.fleet, { store: bench.store, clock: bench.clock });
    expect(bench.cluster.state.nodes.size).toBe(0);
  });
});
