// SPDX-License-Identifier: Apache-2.0
// The autoscaler compares target and instances. If they differ, or two instances share an id, it "fixes" the size in
// every loop and does nothing else.

import { fromBinary, toBinary } from '@bufbuild/protobuf';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { aPoolConfig } from '../../config/types/testing/sample-pool.ts';
import { REGION } from '../../fleet/testing/settings.ts';
import { aTestFleet } from '../../fleet/testing/test-fleet.ts';
import type { Intent, MachineIntent } from '../../model/intent.ts';
import { type Machine, type MachineId, PHASES, parseMachineId } from '../../model/machine.ts';

import {
  type NodeGroupNodesResponse,
  NodeGroupNodesResponseSchema,
  InstanceStatus_InstanceState as State,
} from '../gen/externalgrpc/cloud_provider_pb.js';
import { Groups } from './groups.ts';
import { resolveNode } from './resolve-node.ts';

/** Encoded and decoded: lists are cached in encoded form. */
function asReceived(list: NodeGroupNodesResponse): NodeGroupNodesResponse {
  return fromBinary(NodeGroupNodesResponseSchema, toBinary(NodeGroupNodesResponseSchema, list));
}

const size = { cpu: 2, memoryBytes: 2 ** 31, diskBytes: 2 ** 34 };

const GROUP = aPoolConfig({ regions: [REGION], size });

function machineId(number: number): MachineId {
  const id = parseMachineId(`00000000-0000-4000-8000-${String(number).padStart(12, '0')}`);
  if (!id.ok) throw new Error(id.problem);
  return id.value;
}

const FAILURE = { code: 'TASK_FAILED', message: 'no', at: 0, phase: 'creating' } as const;
const UNPLACED_PHASES: readonly string[] = ['requested', 'failed', 'gone'];
const UNJOINED_PHASES: readonly string[] = ['requested', 'placed', 'creating', 'configuring'];

/** Each machine has its own VM id; a machine that is gone or failed may share one. */
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
    const vmId = UNPLACED_PHASES.includes(phase) ? other : 1_000 + number;
    const name = `worker-${number}`;
    const isPlaced = hasPlace || !UNPLACED_PHASES.includes(phase);
    const hasNode = isPlaced && node !== undefined && !UNJOINED_PHASES.includes(phase);
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

/** The region has been read; headroom has not been counted. */
const FORECAST = {
  isComplete: () => true,
  takenAt: () => undefined,
  readError: () => undefined,
  hasVm: () => false,
  headroom: () => undefined,
};

const MAX_INTENTS = 4;

interface IntentFields extends Pick<MachineIntent, 'kind' | 'state'> {
  readonly machines: readonly MachineId[];
}

const intent: fc.Arbitrary<IntentFields> = fc.record({
  kind: fc.constantFrom<IntentFields['kind'][]>('create', 'delete', 'cancel'),
  state: fc.constantFrom<IntentFields['state'][]>('open', 'open', 'done'),
  machines: fc.uniqueArray(fc.integer({ min: 1, max: 14 }).map(machineId), {
    minLength: 1,
    maxLength: 4,
  }),
});

/** Each machine belongs to one create intent only: its id is generated with the intent. */
function toIntent(index: number, { kind, machines: ids, state }: IntentFields): Intent {
  const id = String(index);
  const common = { id, state, pool: 'workers', requestedAt: 0, requestedBy: 'test', reason: '' };
  if (kind !== 'create') return { ...common, kind, machines: ids };
  const own = ids.filter((one) => Number(one.slice(-2)) % MAX_INTENTS === index);
  return { ...common, kind, machines: own, size };
}

const machines = fc.uniqueArray(machine, { maxLength: 9, selector: ({ id }) => id });

it('the target equals the number of instances that are not being deleted, and their ids are unique', () =>
  fc.assert(
    fc.asyncProperty(
      machines,
      fc.array(intent, { maxLength: MAX_INTENTS }),
      async (recorded, intents) => {
        const { store, fleet, clock } = aTestFleet();
        for (const one of recorded) await store.machines.create(one.id, one);
        for (const [index, one] of intents.entries())
          await store.intents.create(String(index), toIntent(index, one));
        await fleet.view.refresh();
        const pricing = { vcpuHour: 0, memoryGiBHour: 0 };
        const settings = { pools: [GROUP], pricing, gpu: { label: '', types: [] } };
        const { view } = fleet;
        const groups = new Groups({ fleet: { view, forecast: FORECAST }, clock, settings });
        const { instances } = asReceived(groups.instances('workers'));
        const staying = instances.filter(
          ({ status }) => status?.instanceState !== State.instanceDeleting,
        );
        expect(groups.targetSize('workers')).toBe(staying.length);
        expect(new Set(instances.map(({ id }) => id)).size).toBe(instances.length);
        for (const { id = '' } of instances) {
          const resolved = resolveNode({ name: id, providerID: id }, fleet.view);
          expect(resolved.kind).toMatch(/^(machine|requested)$/);
        }
        expect(groups.find('workers')?.maxSize).toBeGreaterThanOrEqual(staying.length);
      },
    ),
    { numRuns: 300 },
  ));
