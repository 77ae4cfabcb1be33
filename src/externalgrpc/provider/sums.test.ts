// SPDX-License-Identifier: Apache-2.0
// What the autoscaler adds up. A target that is not the number of instances, or an id that stands for two of them, is a
// wrong size to it, which it "fixes" loop after loop and does nothing else.
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { REGION } from '../../fleet/testing/settings.ts';
import { aTestFleet } from '../../fleet/testing/test-fleet.ts';
import type { Intent } from '../../model/intent.ts';
import { type Machine, PHASES } from '../../model/machine.ts';
import { type MachineId, parseMachineId } from '../../model/machine-id.ts';
import {
  type NodeGroupNodesResponse,
  NodeGroupNodesResponseSchema,
  InstanceStatus_InstanceState as State,
} from '../gen/externalgrpc/cloud_provider_pb.js';
import type { GroupSettings } from '../settings.ts';
import { Groups } from './groups.ts';
import { resolveNode } from './resolve-node.ts';

/** Over the wire, which is the form in which lists are kept. */
function asReceived(list: NodeGroupNodesResponse): NodeGroupNodesResponse {
  return fromBinary(NodeGroupNodesResponseSchema, toBinary(NodeGroupNodesResponseSchema, list));
}

const size = { cpu: 2, memoryBytes: 2 ** 31, diskBytes: 2 ** 34 };

const NOTHING = { cpuMilli: 0, memoryBytes: 0, diskBytes: 0 };

const GROUP: GroupSettings = {
  name: 'workers',
  regions: [REGION],
  min: 0,
  max: 10,
  size,
  zone: undefined,
  architecture: 'amd64',
  labels: {},
  groupLabel: 'autoscaler.proxmox/group',
  taints: [],
  instanceType: undefined,
  gpu: undefined,
  extendedResources: {},
  capacity: {
    maxPods: 110,
    kubeReserved: NOTHING,
    systemReserved: NOTHING,
    evictionThreshold: { memoryBytes: 0, diskPercentage: 0 },
  },
  pricePerHour: undefined,
  options: {
    scaleDownUtilizationThreshold: undefined,
    scaleDownGpuUtilizationThreshold: undefined,
    scaleDownUnneededTimeMs: undefined,
    scaleDownUnreadyTimeMs: undefined,
    maxNodeProvisionTimeMs: undefined,
    zeroOrMaxNodeScaling: undefined,
    ignoreDaemonSetsUtilization: undefined,
  },
};

function machineId(number: number): MachineId {
  const id = parseMachineId(`00000000-0000-4000-8000-${String(number).padStart(12, '0')}`);
  if (!id.ok) throw new Error(id.problem);
  return id.value;
}

const FAILURE = { code: 'TASK_FAILED', message: 'no', at: 0, phase: 'creating' } as const;
const WITHOUT_PLACE: readonly string[] = ['requested', 'failed', 'gone'];
const NEVER_JOINED: readonly string[] = ['requested', 'placed', 'creating', 'configuring'];

/** Each has a VM id of its own; those of machines that are over may be another's. */
const machine = fc
  .record({
    number: fc.integer({ min: 1, max: 9 }),
    phase: fc.constantFrom(...PHASES),
    hasFailed: fc.boolean(),
    hasPlace: fc.boolean(),
    node: fc.constantFrom(undefined, 'k3s', 'proxmox'),
    vmId: fc.integer({ min: 1_001, max: 1_009 }),
  })
  .map(({ number, phase, hasFailed, hasPlace, node, vmId: other }): Machine => {
    const vmId = WITHOUT_PLACE.includes(phase) ? other : 1_000 + number;
    const name = `worker-${number}`;
    const isPlaced = hasPlace || !WITHOUT_PLACE.includes(phase);
    const hasNode = isPlaced && node !== undefined && !NEVER_JOINED.includes(phase);
    const providerId = node === 'k3s' ? `k3s://${name}` : `proxmox://${REGION}/${vmId}`;
    const isFailure = phase === 'failed' || (phase === 'deleting' && hasFailed);
    return {
      id: machineId(number),
      pool: 'workers',
      phase,
      phaseSince: 0,
      requestedAt: number,
      size,
      attempts: 0,
      ...(isPlaced && {
        placement: {
          region: REGION,
          host: 'pve1',
          vmId,
          name,
          diskStorage: 'local-lvm',
          addresses: [],
        },
      }),
      ...(hasNode && { nodeName: name, providerId }),
      ...(isFailure && { failure: FAILURE }),
    };
  });

/** Its region has been read, and nobody has counted its room. */
const SEEN = {
  isComplete: () => true,
  takenAt: () => undefined,
  readError: () => undefined,
  hasVm: () => false,
  headroom: () => undefined,
};

const ASKED_MAX = 4;

interface Asked extends Pick<Intent, 'kind' | 'state'> {
  readonly machines: readonly MachineId[];
}

const intent: fc.Arbitrary<Asked> = fc.record({
  kind: fc.constantFrom<Asked['kind'][]>('create', 'delete', 'cancel'),
  state: fc.constantFrom<Asked['state'][]>('open', 'open', 'done'),
  machines: fc.uniqueArray(fc.integer({ min: 1, max: 14 }).map(machineId), {
    minLength: 1,
    maxLength: 4,
  }),
});

/** A machine is asked for by one of them only: its id is made with the intent. */
function written(index: number, { kind, machines: named, state }: Asked): Intent {
  const id = String(index);
  const common = { id, state, pool: 'workers', requestedAt: 0, requestedBy: 'test', reason: '' };
  if (kind !== 'create') return { ...common, kind, machines: named };
  const own = named.filter((one) => Number(one.slice(-2)) % ASKED_MAX === index);
  return { ...common, kind, machines: own, size };
}

const machines = fc.uniqueArray(machine, { maxLength: 9, selector: ({ id }) => id });

it('the target is the number of instances that are not being deleted, each with an id of its own', () =>
  fc.assert(
    fc.asyncProperty(
      machines,
      fc.array(intent, { maxLength: ASKED_MAX }),
      async (recorded, asked) => {
        const { store, fleet, clock } = aTestFleet();
        for (const one of recorded) await store.machines.create(one.id, one);
        for (const [index, one] of asked.entries())
          await store.intents.create(String(index), written(index, one));
        await fleet.view.refresh();
        const pricing = { vcpuHour: 0, memoryGiBHour: 0 };
        const settings = { groups: [GROUP], pricing, gpu: { label: '', types: [] } };
        const { view } = fleet;
        const groups = new Groups({ fleet: { view, forecast: SEEN }, clock, settings });
        const { instances } = asReceived(groups.instances('workers'));
        const staying = instances.filter(
          ({ status }) => status?.instanceState !== State.instanceDeleting,
        );
        expect(groups.targetSize('workers')).toBe(staying.length);
        expect(new Set(instances.map(({ id }) => id)).size).toBe(instances.length);
        for (const { id = '' } of instances) {
          const resolved = resolveNode({ name: id, providerID: id }, fleet.view);
          expect(resolved.kind).toMatch(/^(machine|coming)$/);
        }
        expect(groups.find('workers')?.maxSize).toBeGreaterThanOrEqual(staying.length);
      },
    ),
    { numRuns: 300 },
  ));
