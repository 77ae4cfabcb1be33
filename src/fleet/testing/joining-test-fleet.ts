// SPDX-License-Identifier: Apache-2.0
// A test fleet with a cluster, which its machines join.
import type { Phase } from '../../model/machine.ts';
import { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import type { FleetSettings, PoolSettings, SeedSettings } from '../context/settings.ts';
import { aPool, someSettings } from './settings.ts';
import { SimulatedGuests } from './simulated-guests.ts';
import {
  aTestFleet,
  machinesIn,
  REASON,
  runPasses,
  type TestFleet,
  untilAtRest,
} from './test-fleet.ts';

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
  if (cluster === undefined) throw new Error('the test fleet has no cluster');
  return { ...parts, cluster, guests: new SimulatedGuests({ ...parts, cluster }) };
}

export function joiningSettings(overrides: Partial<FleetSettings> = {}): FleetSettings {
  return someSettings([aJoiningPool()], overrides);
}

export async function aReadyMachine(testFleet: JoiningTestFleet) {
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  await untilAtRest(testFleet.fleet, testFleet);
  return onlyMachine(testFleet, 'ready');
}

/** A machine that waits for its Node, which never registers. */
export async function aJoiningMachine(testFleet: JoiningTestFleet) {
  testFleet.guests.behaviour = { neverRegisters: true };
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  await runPasses(testFleet, 25);
  return onlyMachine(testFleet, 'joining');
}

/** Throws unless there is exactly one machine, placed and in this phase. */
export async function onlyMachine({ store }: JoiningTestFleet, phase: Phase) {
  const machines = await machinesIn(store);
  const [machine] = machines;
  if (machines.length !== 1 || machine?.placement === undefined || machine.phase !== phase) {
    const phases = machines.map((one) => one.phase).join(', ');
    throw new Error(`expected one machine in phase ${phase}, found: ${phases}`);
  }
  return { ...machine, placement: machine.placement };
}
