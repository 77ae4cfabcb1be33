// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VMID_LABEL } from '../../bootstrap/index.ts';
import { vmProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import type { FleetSettings } from '../context/settings.ts';
import { aJoiningTestFleet, aReadyMachine } from '../testing/joining-test-fleet.ts';
import { aPool, aRegion, REGION, someSettings } from '../testing/settings.ts';
import {
  aTestFleet,
  machinesIn,
  onePass,
  REASON,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

function withNodes(settingsOfFleet: FleetSettings, nodes: readonly ClusterNode[]): TestFleet {
  return aTestFleet(settingsOfFleet, (clock) => {
    const cluster = new MemoryCluster({ clock, random: new SeededRandom(6) });
    for (const node of nodes) cluster.state.putNode(node);
    return cluster;
  });
}

describe('vmIdIn', () => {
  it('does not choose a VM id that the provider id of a Node names', async () => {
    const testFleet = aJoiningTestFleet();
    for (const vmId of [1_250, 1_251, 1_252]) {
      testFleet.cluster.state.putNode(
        aClusterNode({ name: `old-${vmId}`, providerId: vmProviderId(REGION, vmId) }),
      );
    }
    const { placement } = await aReadyMachine(testFleet);
    expect(placement.vmId).toBe(1_253);
  });

  it('does not choose a VM id that the label of a Node names, unless its provider id names another VM', async () => {
    const testFleet = aJoiningTestFleet();
    const labels = { [VMID_LABEL]: '1250' };
    for (const [name, providerId] of Object.entries({
      old: 'k3s://old',
      other: vmProviderId(REGION, 1_251),
      elsewhere: vmProviderId('elsewhere', 1_252),
    })) {
      const own = name === 'elsewhere' ? { [VMID_LABEL]: '1252' } : labels;
      testFleet.cluster.state.putNode(aClusterNode({ name, providerId, labels: own }));
    }
    const { placement } = await aReadyMachine(testFleet);
    expect(placement.vmId).toBe(1_252);
  });
});

describe('vmIdIn: ids of deleted machines', () => {
  it('are not assigned again before their cool-down has ended', async () => {
    const region = aRegion({ vmIds: { from: 1_250, to: 1_251 } });
    const testFleet = aTestFleet(someSettings(undefined, { regions: { [REGION]: region } }));
    const { fleet, clock, store } = testFleet;
    for (let time = 0; time < 2; time += 1) {
      await fleet.scaleTo('workers', 1, REASON);
      await untilAtRest(fleet, testFleet);
      await fleet.scaleTo('workers', 0, REASON);
      await untilAtRest(fleet, testFleet);
    }
    const ids = (await machinesIn(store)).map(({ placement }) => placement?.vmId);
    expect(ids.toSorted()).toEqual([1_250, 1_251]);
    await fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 20);
    const waiting = (await machinesIn(store)).filter(({ phase }) => phase === 'requested');
    expect(waiting).toHaveLength(1);
    await clock.advance(31 * 60_000);
    await untilAtRest(fleet, testFleet);
    const ready = (await machinesIn(store)).filter(({ phase }) => phase === 'ready');
    expect(ready.map(({ placement }) => placement?.vmId)).toEqual([1_250]);
  });
});

describe('nameIn', () => {
  it('does not choose the name of an existing Node', async () => {
    const names = { prefix: 'worker', role: undefined, suffix: 'ordinal' } as const;
    const testFleet = withNodes(someSettings([aPool({ names })]), [
      aClusterNode({ name: 'worker-1' }),
    ]);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await onePass(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine?.placement?.name).toBe('worker-2');
  });
});
