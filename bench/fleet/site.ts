// SPDX-License-Identifier: Apache-2.0
// A simulated site of a given size with the engine and the Proxmox client, on virtual time.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFleet, type Fleet, type FleetSettings } from '../../src/fleet/index.ts';
import { aPool, aRegion, CLUSTER, REGION, someSettings } from '../../src/fleet/testing/settings.ts';
import type { MachineId } from '../../src/model/machine.ts';
import { formatMarker } from '../../src/model/marker.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import type { Store } from '../../src/ports/store.ts';
import { type ClusterDescription, defaultCluster } from '../../src/sim/proxmox/index.ts';
import { openSqliteStore } from '../../src/store/index.ts';
import {
  IMAGE,
  type SimulatedRegion,
  simulatedRegion,
} from '../../test/proxmox/simulated-region.ts';

const GIB = 2 ** 30;
const FIRST_ID = 10_000;
const REASON = { by: 'bench', reason: 'benchmark' };

export interface SiteOptions {
  readonly hosts: number;
  /** Machines that exist from the start without records, as after a lost database. */
  readonly machines?: number;
  readonly createsPerHost: number;
  /** In memory unless the database is measured: its writes wait for the disk. */
  readonly records: 'in memory' | 'in a database';
}

export interface BenchSite extends SimulatedRegion {
  readonly fleet: Fleet;
  readonly store: Store;
  requests(): number;
  close(): Promise<void>;
}

/** Large hosts, so that capacity does not limit the result. */
export function benchCluster({
  hosts,
  machines = 0,
}: Pick<SiteOptions, 'hosts' | 'machines'>): ClusterDescription {
  const base = defaultCluster(hosts);
  return {
    ...base,
    hosts: base.hosts.map((host) => ({ ...host, cpus: 1_024, memory: 4_096 * GIB })),
    storages: base.storages.map((storage) => ({ ...storage, size: 100_000 * GIB })),
    urls: [
      {
        url: IMAGE.url,
        size: 600 * 2 ** 20,
        virtualSize: 3 * GIB,
        checksums: { sha256: IMAGE.sha256 },
      },
    ],
    vms: Array.from({ length: machines }, (_, at) => runningMachine(at, hosts)),
  };
}

function runningMachine(at: number, hosts: number) {
  const vmId = FIRST_ID + at;
  const id = `0a1b2c3d-0000-4000-8000-${String(vmId).padStart(12, '0')}` as MachineId;
  return {
    id: vmId,
    host: `pve${(at % hosts) + 1}`,
    running: true,
    image: 'noble-with-agent.qcow2',
    config: {
      name: `worker-${at}`,
      cores: '2',
      memory: '2048',
      agent: '1',
      tags: 'ca-group-workers;pvescaler',
      description: formatMarker({
        cluster: CLUSTER,
        pool: 'workers',
        machine: id,
        vmId,
        createdAtSeconds: 1_760_000_000,
        addresses: [],
      }),
      scsi0: 'local-lvm:3',
      net0: 'virtio,bridge=vmbr0',
      boot: 'order=scsi0',
      smbios1: `uuid=${id}`,
    },
  };
}

export function benchSettings(createsPerHost: number): FleetSettings {
  const region = aRegion({
    storage: { images: 'local', seeds: 'shared', disks: ['local-lvm'] },
    vmIds: { from: FIRST_ID, to: FIRST_ID + 9_999 },
    limits: { createsPerHost, createsPerStorage: createsPerHost },
  });
  const pool = aPool({ limits: { ...aPool().limits, max: 10_000 } });
  return someSettings([pool], { regions: { [REGION]: region }, orphans: 'delete', busyMs: 500 });
}

export async function benchSite(options: SiteOptions): Promise<BenchSite> {
  const region = simulatedRegion({ cluster: benchCluster(options) }, { region: REGION });
  const folder = mkdtempSync(join(tmpdir(), 'pvescaler-bench-'));
  const { clock } = region;
  const random = new SeededRandom(1);
  const store =
    options.records === 'in memory'
      ? new MemoryStore({ clock })
      : await openSqliteStore({ path: join(folder, 'state.db'), clock, random });
  const fleet = createFleet({
    clock,
    random,
    store,
    hypervisors: new Map([[REGION, region.hypervisor]]),
    settings: benchSettings(options.createsPerHost),
  });
  return {
    ...region,
    fleet,
    store,
    requests: () => [...region.sim.inspect().requests.values()].reduce((a, b) => a + b, 0),
    close: async () => {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Runs the driver until the condition holds after a pass; returns the virtual time it took. */
export async function driveUntil(
  { fleet, clock }: BenchSite,
  isDone: () => Promise<boolean>,
): Promise<number> {
  const started = clock.now();
  const over = new AbortController();
  let checking = Promise.resolve();
  const check = async (before: Promise<void>) => {
    await before;
    if (!over.signal.aborted && (await isDone())) over.abort();
  };
  const onPass = () => {
    checking = check(checking);
  };
  let elapsed = 0;
  over.signal.addEventListener('abort', () => {
    elapsed = clock.now() - started;
  });
  await advanceUntilSettled(clock, fleet.runDriver({ signal: over.signal, events: { onPass } }));
  return elapsed;
}

export async function scaleTo(site: BenchSite, size: number): Promise<number> {
  await site.fleet.scaleTo('workers', size, REASON);
  return driveUntil(site, async () => {
    const { machines, openIntents, pools } = await site.fleet.status();
    const failed = machines.find(({ phase }) => phase === 'failed');
    if (failed !== undefined)
      throw new Error(`machine ${failed.id} failed: ${failed.failure?.message}`);
    const [pool] = pools;
    return openIntents === 0 && pool?.ready === size && pool.target === size && pool.deleting === 0;
  });
}
