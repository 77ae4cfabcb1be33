// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { ClusterNode } from '../../ports/cluster.ts';
import { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import type { FleetSettings } from '../context/settings.ts';
import { aPool, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import { aTestFleet, machinesIn, onePass, type TestFleet, WHY } from '../testing/test-fleet.ts';

const settings = someSettings([aPool({ network: STATIC_NETWORK })]);

/** Somebody's VM, outside our range and without a tag of ours. */
function aStranger({ hypervisor }: TestFleet, vmId: number, address: string | undefined): void {
  hypervisor.state.vms.set(vmId, {
    vmId,
    host: 'pve2',
    options: new Map([
      ['name', `theirs-${vmId}`],
      ...(address === undefined ? [] : [['ipconfig0', `ip=${address}/24,gw=10.10.10.1`] as const]),
    ]),
    revision: 1,
    startedAt: undefined,
  });
}

function withNodes(settingsOfFleet: FleetSettings, nodes: readonly ClusterNode[]): TestFleet {
  return aTestFleet(settingsOfFleet, (clock) => {
    const cluster = new MemoryCluster({ clock, random: new SeededRandom(6) });
    for (const node of nodes) cluster.state.putNode(node);
    return cluster;
  });
}

async function addressesOf(bench: TestFleet): Promise<readonly string[]> {
  const machines = await machinesIn(bench.store);
  return machines.flatMap(({ placement }) => placement?.addresses ?? []).toSorted();
}

function readsOf({ hypervisor }: TestFleet, vmId: number): number {
  return hypervisor.calls.filter(({ method, vmId: of }) => method === 'vmConfig' && of === vmId)
    .length;
}

describe('an address', () => {
  it("that anybody's VM is configured with is not given out", async () => {
    const bench = aTestFleet(settings);
    aStranger(bench, 100, '10.10.10.11');
    aStranger(bench, 101, undefined);
    await bench.fleet.scaleTo('workers', 2, WHY);
    await onePass(bench.fleet, bench);
    expect(await addressesOf(bench)).toEqual(['10.10.10.12/24', '10.10.10.13/24']);
  });

  it('is looked up once per VM, and again when the VM looks different', async () => {
    const bench = aTestFleet(settings);
    aStranger(bench, 100, '10.10.10.11');
    for (const size of [1, 2]) {
      await bench.fleet.scaleTo('workers', size, WHY);
      await onePass(bench.fleet, bench);
    }
    expect(readsOf(bench, 100)).toBe(1);
    bench.hypervisor.state.vms.get(100)?.options.set('name', 'renamed');
    await bench.fleet.scaleTo('workers', 3, WHY);
    await onePass(bench.fleet, bench);
    expect(readsOf(bench, 100)).toBe(2);
  });

  it('costs nothing where machines ask for theirs', async () => {
    const bench = aTestFleet();
    aStranger(bench, 100, '10.10.10.11');
    await bench.fleet.scaleTo('workers', 1, WHY);
    await onePass(bench.fleet, bench);
    expect(readsOf(bench, 100)).toBe(0);
  });

  it('that a Node has is not given out, whoever made the Node', async () => {
    const bench = withNodes(settings, [aClusterNode({ addresses: ['10.10.10.11', 'fd00::1'] })]);
    await bench.fleet.scaleTo('workers', 1, WHY);
    await onePass(bench.fleet, bench);
    expect(await addressesOf(bench)).toEqual(['10.10.10.12/24']);
  });

  it('that a Node had when the cluster was read last is not given out while it cannot be', async () => {
    const bench = withNodes(settings, [aClusterNode({ addresses: ['10.10.10.11'] })]);
    await onePass(bench.fleet, bench);
    bench.cluster?.disconnect();
    await bench.clock.advance(10 * 60_000);
    await bench.fleet.scaleTo('workers', 1, WHY);
    await onePass(bench.fleet, bench);
    expect(await addressesOf(bench)).toEqual(['10.10.10.12/24']);
  });
});

describe('a name', () => {
  it('that a Node has is not given to another machine', async () => {
    const names = { prefix: 'worker', role: undefined, suffix: 'ordinal' } as const;
    const bench = withNodes(someSettings([aPool({ names })]), [aClusterNode({ name: 'worker-1' })]);
    await bench.fleet.scaleTo('workers', 1, WHY);
    await onePass(bench.fleet, bench);
    const [machine] = await machinesIn(bench.store);
    expect(machine?.placement?.name).toBe('worker-2');
  });
});
