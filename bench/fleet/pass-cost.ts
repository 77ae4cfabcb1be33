// SPDX-License-Identifier: Apache-2.0
// CPU time of one reconcile pass over joined machines at rest, on fakes: the engine alone, without client and network.
import { aJoiningTestFleet, joiningSettings } from '../../src/fleet/testing/joining-test-fleet.ts';
import { aRegion, CLUSTER, REGION } from '../../src/fleet/testing/settings.ts';
import { RECONCILE_LEASE } from '../../src/model/lease.ts';
import type { MachineId } from '../../src/model/machine.ts';
import { formatMarker } from '../../src/model/marker.ts';
import { vmProviderId } from '../../src/model/provider-id.ts';
import { aClusterNode } from '../../src/ports/fakes/sample-cluster.ts';

export interface PassCost {
  readonly machines: number;
  readonly passCpuMs: number;
}

const FIRST_ID = 10_000;
const HOSTS = ['pve1', 'pve2', 'pve3'];
const WARM_UP_PASSES = 10;
const MEASURED_PASSES = 21;
const HOUR_MS = 3_600_000;

/** The median of several passes, after the machines were adopted and their Nodes completed. */
export async function measurePassCost(machines: number): Promise<PassCost> {
  const { fleet, clock, store } = aSiteAtRest(machines);
  const request = { name: RECONCILE_LEASE, holder: 'bench', durationMs: HOUR_MS };
  const lease = await store.leases.acquire(request);
  const cpuMs: number[] = [];
  for (let pass = 0; pass < WARM_UP_PASSES + MEASURED_PASSES; pass += 1) {
    const before = process.cpuUsage();
    const running = fleet.reconcileOnce(lease);
    // A pass over thousands of machines yields to the event loop by a short sleep.
    const state = { isOver: false };
    void running.finally(() => {
      state.isOver = true;
    });
    while (!state.isOver) await clock.advance(1);
    const { inProgress } = await running;
    const { user, system } = process.cpuUsage(before);
    if (pass >= WARM_UP_PASSES) cpuMs.push((user + system) / 1_000);
    if (pass >= WARM_UP_PASSES && inProgress > 0)
      throw new Error(`${inProgress} machines are still in progress`);
    await clock.advance(20_000);
  }
  const joined = (await fleet.status()).machines.filter(
    ({ phase, nodeName }) => phase === 'ready' && nodeName !== undefined,
  );
  if (joined.length !== machines) throw new Error(`${joined.length} of ${machines} have a Node`);
  const passCpuMs = cpuMs.toSorted((a, b) => a - b)[Math.floor(MEASURED_PASSES / 2)] ?? 0;
  return { machines, passCpuMs };
}

function aSiteAtRest(machines: number) {
  const vmIds = { from: FIRST_ID, to: FIRST_ID + 9_999 };
  const site = aJoiningTestFleet(joiningSettings({ regions: { [REGION]: aRegion({ vmIds }) } }));
  for (let at = 0; at < machines; at += 1) {
    const vmId = FIRST_ID + at;
    const name = `worker-${at}`;
    const id = `0a1b2c3d-0000-4000-8000-${String(vmId).padStart(12, '0')}` as MachineId;
    site.hypervisor.state.vms.set(vmId, {
      vmId,
      host: HOSTS[at % HOSTS.length] ?? '',
      options: vmOptions(id, vmId, name),
      revision: 1,
      startedAt: 0,
    });
    site.cluster.state.putNode(
      aClusterNode({
        name,
        uid: `uid-${id}`,
        systemUuid: id,
        providerId: vmProviderId(REGION, vmId),
        ready: true,
        createdAt: site.clock.now(),
      }),
    );
  }
  return site;
}

function vmOptions(id: MachineId, vmId: number, name: string): Map<string, string> {
  const description = formatMarker({
    cluster: CLUSTER,
    pool: 'workers',
    machine: id,
    vmId,
    createdAtSeconds: 1_760_000_000,
    readySinceSeconds: 1_760_000_100,
    addresses: [],
  });
  return new Map([
    ['name', name],
    ['cores', '2'],
    ['memory', '2048'],
    ['description', description],
    ['smbios1', `uuid=${id}`],
    ['scsi0', `local-lvm:vm-${vmId}-disk-0,size=20G`],
    ['boot', 'order=scsi0'],
  ]);
}
