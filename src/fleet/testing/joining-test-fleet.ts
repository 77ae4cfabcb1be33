// SPDX-License-Identifier: Apache-2.0
// A bench with a cluster whose machines join it.
import { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import type { FleetSettings, PoolSettings, SeedSettings } from '../context/settings.ts';
import { aPool, someSettings } from './settings.ts';
import { SimulatedGuests } from './simulated-guests.ts';
import { aTestFleet, type TestFleet } from './test-fleet.ts';

export interface JoiningTestFleet extends TestFleet {
  readonly cluster: MemoryCluster;
  readonly guests: SimulatedGuests;
}

const HOUR_MS = 3_600_000;

export function aJoiningSeed(overrides: Partial<SeedSettings['registration']> = {}): SeedSettings {
  return {
    registration: {
      labels: { tier: 'small', 'node-role.kubernetes.io/worker': '' },
      groupLabel: 'autoscaler.proxmox/group',
      taints: [],
      architecture: 'amd64',
      ...overrides,
    },
    login: { user: 'ubuntu', publicKeys: [] },
    preinstalled: true,
    join: {
      kind: 'k3s',
      via: 'cloud-init',
      server: 'https://10.0.0.2:6443',
      version: 'v1.34.4+k3s1',
      token: { kind: 'auto', ttlMs: HOUR_MS },
      install: 'none',
      downloadUrl: undefined,
      sha256: undefined,
      registries: undefined,
      agentArgs: [],
      packages: [],
      files: [],
      cloudConfig: undefined,
      proxy: undefined,
    },
  };
}

export function aJoiningPool(overrides: Partial<PoolSettings> = {}): PoolSettings {
  return aPool({ joins: true, seed: aJoiningSeed(), ...overrides });
}

export function aJoiningTestFleet(settings: FleetSettings = joiningSettings()): JoiningTestFleet {
  const parts = aTestFleet(
    settings,
    (clock) => new MemoryCluster({ clock, random: new SeededRandom(6) }),
  );
  const { cluster } = parts;
  if (cluster === undefined) throw new Error('a bench without a cluster');
  return { ...parts, cluster, guests: new SimulatedGuests({ ...parts, cluster }) };
}

export function joiningSettings(overrides: Partial<FleetSettings> = {}): FleetSettings {
  return someSettings([aJoiningPool()], overrides);
}
