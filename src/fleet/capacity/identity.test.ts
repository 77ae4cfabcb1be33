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
import { aPool, REGION, someSettings } from '../testing/settings.ts';
import { aTestFleet, machinesIn, onePass, REASON, type TestFleet } from '../testing/test-fleet.ts';

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
