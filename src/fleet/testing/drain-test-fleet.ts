// SPDX-License-Identifier: Apache-2.0
// A test fleet with one ready machine, whose Node has pods.
import type { Drain } from '../../model/drain.ts';
import type { MachineId } from '../../model/machine.ts';
import type { Pod } from '../../model/pod.ts';
import { aClusterPod } from '../../ports/fakes/sample-cluster.ts';
import type { CheckDrain } from '../context/options.ts';
import type { PoolSettings } from '../context/settings.ts';
import type { Fleet } from '../fleet.ts';
import {
  aJoiningPool,
  aJoiningTestFleet,
  aReadyMachine,
  type JoiningTestFleet,
  onlyMachine,
} from './joining-test-fleet.ts';
import { someSettings } from './settings.ts';
import { aFleet, onePass, runPasses } from './test-fleet.ts';

export interface DrainTestFleet extends JoiningTestFleet {
  readonly id: MachineId;
  readonly nodeName: string;
  /** Puts a pod on the machine's Node. */
  putPod(overrides?: Partial<Pod>): Pod;
  drain(): Promise<Drain | undefined>;
  /** Runs passes until the drain is in this state. */
  untilDrain(state: Drain['state']): Promise<Drain>;
}

interface DrainTestOptions {
  readonly pool?: Partial<PoolSettings>;
  readonly checkDrain?: CheckDrain;
}

export async function aDrainTestFleet(options: DrainTestOptions = {}): Promise<DrainTestFleet> {
  const settings = someSettings([aJoiningPool(options.pool)]);
  const testFleet = aJoiningTestFleet(settings);
  const fleet = aFleet({ ...testFleet, settings, seed: 1, checkDrain: options.checkDrain });
  const { id, nodeName = '' } = await aReadyMachine({ ...testFleet, fleet });
  return { ...testFleet, fleet, ...drainTools(testFleet, fleet, { id, nodeName }) };
}

function drainTools(
  testFleet: JoiningTestFleet,
  fleet: Fleet,
  { id, nodeName }: { readonly id: MachineId; readonly nodeName: string },
) {
  const drain = async () => (await testFleet.store.drains.get(id))?.value;
  return {
    id,
    nodeName,
    drain,
    putPod: (overrides: Partial<Pod> = {}) => {
      const pod = aClusterPod({ nodeName, ...overrides });
      testFleet.cluster.state.putPod(pod);
      return pod;
    },
    untilDrain: async (state: Drain['state']) => {
      for (let pass = 0; pass < 60; pass += 1) {
        const current = await drain();
        if (current?.state === state) return current;
        await onePass(fleet, testFleet);
      }
      throw new Error(`the drain is ${(await drain())?.state}, not ${state}`);
    },
  };
}

/** Requests the drain as a person does. */
export function requestDrain(testFleet: DrainTestFleet, by = 'cli') {
  return testFleet.fleet.drain({ machines: [{ id: testFleet.id }], by, reason: 'not needed' });
}

/** The Node of a machine that is ready again is as it was. */
export async function restoredNode(testFleet: DrainTestFleet) {
  await runPasses(testFleet, 10);
  await onlyMachine(testFleet, 'ready');
  const node = testFleet.cluster.state.nodes.get(testFleet.nodeName);
  return { taints: node?.taints, unschedulable: node?.unschedulable };
}

/** What `restoredNode` resolves with. */
export const RESTORED = { taints: [], unschedulable: false };
export const BUDGET = 'PodDisruptionBudget web allows no disruption';

export function protect({ cluster }: DrainTestFleet, pod: Pod): void {
  cluster.state.protectedPods.set(`${pod.namespace}/${pod.name}`, BUDGET);
}

/** Names of the pods whose eviction was tried, in order. */
export function evictions({ cluster }: DrainTestFleet): readonly (string | undefined)[] {
  return cluster.calls.filter(({ method }) => method === 'evict').map(({ subject }) => subject);
}

/** `type reason` of the Events about the Node. */
export function eventsOf({ cluster, nodeName }: DrainTestFleet): readonly string[] {
  return cluster.state.events
    .filter(({ regarding }) => regarding.kind === 'Node' && regarding.name === nodeName)
    .map(({ type, reason }) => `${type} ${reason}`);
}
