// SPDX-License-Identifier: Apache-2.0
// Thousands of ready machines in a real database, with their VMs and Nodes in memory.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { PoolSettings } from '../../src/fleet/index.ts';
import { aHost, aPool, aRegion, REGION, someSettings } from '../../src/fleet/testing/settings.ts';
import { type Machine, parseMachineId } from '../../src/model/machine.ts';
import { MemoryCluster } from '../../src/ports/fakes/memory-cluster.ts';
import { MemoryClusterState } from '../../src/ports/fakes/memory-cluster-state.ts';
import { MemoryHypervisor } from '../../src/ports/fakes/memory-hypervisor.ts';
import { aClusterNode } from '../../src/ports/fakes/sample-cluster.ts';
import { openSqliteStore } from '../../src/store/index.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';

const GIB = 2 ** 30;
const FIRST_VM = 100_000;
const HOSTS = 50;

export interface Scale {
  readonly pools: number;
  readonly machinesPerPool: number;
}

export function poolsOf({ pools, machinesPerPool }: Scale): readonly PoolSettings[] {
  return Array.from({ length: pools }, (_, index) =>
    aPool({
      name: `pool-${index}`,
      limits: { ...aPool().limits, min: 0, max: machinesPerPool + 100 },
      source: { kind: 'netboot' },
      seed: undefined,
    }),
  );
}

export function settingsOf(scale: Scale) {
  const region = aRegion({
    vmIds: { from: FIRST_VM, to: FIRST_VM * 4 },
    limits: { createsPerHost: 4, createsPerStorage: 4 },
  });
  return someSettings(poolsOf(scale), { regions: { [REGION]: region }, holder: 'bench' });
}

export function hypervisorOf(machines: readonly Machine[]): MemoryHypervisor {
  const hosts = Array.from({ length: HOSTS }, (_, index) =>
    aHost(`pve${index}`, { cpus: 4_096, memoryBytes: 8_192 * GIB }),
  );
  const hypervisor = new MemoryHypervisor({
    region: REGION,
    clock: systemClock,
    random: systemRandom,
    hosts,
    taskMs: 3_000,
    bootMs: 5_000,
  });
  for (const { placement } of machines) {
    if (placement === undefined) continue;
    const { vmId, host, name } = placement;
    const options = new Map([
      ['name', name],
      ['cores', '2'],
      ['memory', '2048'],
    ]);
    hypervisor.state.vms.set(vmId, { vmId, host, options, revision: 1, startedAt: 0 });
  }
  return hypervisor;
}

/** The cluster with the Node of each machine. */
export function clusterOf(machines: readonly Machine[]): MemoryCluster {
  const state = new MemoryClusterState(systemRandom.uuid());
  for (const { id, nodeName = '', nodeUid = '', providerId = '', requestedAt } of machines) {
    const createdAt = requestedAt;
    const node = {
      name: nodeName,
      uid: nodeUid,
      providerId,
      systemUuid: id,
      ready: true,
      createdAt,
    };
    state.putNode(aClusterNode(node));
  }
  return new MemoryCluster({ clock: systemClock, random: systemRandom, state });
}

export function machinesOf(scale: Scale): readonly Machine[] {
  const now = systemClock.now();
  return poolsOf(scale).flatMap(({ name, size }, pool) =>
    Array.from({ length: scale.machinesPerPool }, (_, index): Machine => {
      const number = pool * scale.machinesPerPool + index;
      const id = parseMachineId(`00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`);
      if (!id.ok) throw new Error(id.problem);
      return {
        id: id.value,
        pool: name,
        phase: 'ready',
        phaseSince: now - 3_600_000,
        requestedAt: now - 3_700_000,
        size,
        attempts: 0,
        configured: true,
        nodeName: `${name}-${number}`,
        nodeUid: `uid-${number}`,
        providerId: `proxmox://${REGION}/${FIRST_VM + number}`,
        placement: {
          region: REGION,
          host: `pve${number % HOSTS}`,
          vmId: FIRST_VM + number,
          name: `${name}-${number}`,
          diskStorage: 'local-lvm',
          addresses: [],
        },
      };
    }),
  );
}

export function statePathIn(folder: string): string {
  return join(folder, 'state.db');
}

/** In one transaction: fifty thousand flushes would take longer than the measurement. */
export async function storeWith(folder: string, machines: readonly Machine[]) {
  const path = statePathIn(folder);
  await (await openSqliteStore({ path, clock: systemClock, random: systemRandom })).close();
  const database = new DatabaseSync(path);
  database.exec('BEGIN');
  const insert = database.prepare('INSERT INTO machines (key, revision, value) VALUES (?, ?, ?)');
  for (const [index, machine] of machines.entries())
    insert.run(machine.id, index + 1, JSON.stringify(machine));
  database.prepare('UPDATE installation SET revision = ?').run(machines.length);
  database.exec('COMMIT');
  database.close();
  return openSqliteStore({ path, clock: systemClock, random: systemRandom });
}
