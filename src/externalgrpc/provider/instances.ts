// SPDX-License-Identifier: Apache-2.0
// A machine as an instance of the Cluster Autoscaler, from its request until it is gone.
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { FleetView } from '../../fleet/index.ts';
import type { Machine, MachineFailure, MachineId, Phase } from '../../model/machine.ts';

import { placeholderProviderId, vmProviderId } from '../../model/provider-id.ts';
import type { NodeGroup } from '../../pools/index.ts';
import { ERROR_CODES, type ErrorClass } from '../../ports/error-codes.ts';
import {
  type InstanceSchema,
  InstanceStatus_InstanceState as State,
} from '../gen/externalgrpc/cloud_provider_pb.js';

export type InstanceShape = MessageInitShape<typeof InstanceSchema>;

const OUT_OF_RESOURCES = 1;
const OTHER_ERROR = 99;

/** grpc-go refuses responses larger than 4 MiB: ten thousand failed creations with their messages take 3.3 MiB. */
const MAX_MESSAGE_BYTES = 256;

/** Machines that were requested and have no record yet. */
export function requestedInstances(
  { pool, contains }: Pick<NodeGroup, 'pool' | 'contains'>,
  { index, machines }: FleetView,
): InstanceShape[] {
  return index
    .membersOf(pool.name)
    .filter(({ id, size }) => machines.get(id) === undefined && contains(size))
    .map(({ id }) => ({
      id: placeholderProviderId(id),
      status: { instanceState: State.instanceCreating },
    }));
}

/**
 * A failed creation that the autoscaler has not acknowledged by deleting it. It counts towards the target while it is
 * listed: otherwise the target would be reached, and the autoscaler would take the scale-up for a success and not back
 * the group off.
 */
export function isUnacknowledgedFailure(
  { phase, failure }: Machine,
  isDeletionRequested: boolean,
): boolean {
  return failure !== undefined && phase !== 'gone' && !isDeletionRequested;
}

/** Undefined for a machine that is gone or cancelled. */
export function toInstance(
  machine: Machine,
  isDeletionRequested: boolean,
): InstanceShape | undefined {
  const { phase, failure } = machine;
  if (phase === 'gone' || (phase === 'kept' && failure === undefined)) return undefined;
  if (failure !== undefined)
    return isDeletionRequested ? undefined : failedInstance(machine.id, failure);
  // Cancelled before its VM was created.
  if (isDeletionRequested && (phase === 'requested' || phase === 'placed')) return undefined;
  return {
    id: instanceId(machine),
    status: { instanceState: instanceState(machine, isDeletionRequested) },
  };
}

/** The autoscaler notices a failure only on an instance that is being created and has an error. */
function failedInstance(id: MachineId, { code, message }: MachineFailure): InstanceShape {
  return {
    // Not the VM's id: another machine may get that VM id while this failure is still listed.
    id: placeholderProviderId(id),
    status: {
      instanceState: State.instanceCreating,
      errorInfo: {
        errorCode: code,
        errorMessage: truncateMessage(message),
        instanceErrorClass: errorClass(code) === 'NoCapacity' ? OUT_OF_RESOURCES : OTHER_ERROR,
      },
    },
  };
}

/** The full message is in the Events and in the record. */
function truncateMessage(message: string): string {
  if (message.length * 3 <= MAX_MESSAGE_BYTES) return message;
  const bytes = Buffer.from(message);
  if (bytes.length <= MAX_MESSAGE_BYTES) return message;
  // `stream: true` drops a character that the cut splits.
  const kept = new TextDecoder('utf-8', { ignoreBOM: true }).decode(
    bytes.subarray(0, MAX_MESSAGE_BYTES - 3),
    { stream: true },
  );
  return `${kept}…`;
}

const ERROR_CLASSES: ReadonlyMap<string, ErrorClass> = new Map(
  Object.entries(ERROR_CODES).map(([code, facts]) => [code, facts.class]),
);

function errorClass(code: string): ErrorClass | undefined {
  return ERROR_CLASSES.get(code);
}

const STATE_BY_PHASE: Readonly<Record<Phase, State>> = {
  requested: State.instanceCreating,
  placed: State.instanceCreating,
  creating: State.instanceCreating,
  configuring: State.instanceCreating,
  starting: State.instanceCreating,
  booting: State.instanceRunning,
  joining: State.instanceRunning,
  ready: State.instanceRunning,
  draining: State.instanceDeleting,
  deleting: State.instanceDeleting,
  kept: State.instanceDeleting,
  failed: State.instanceCreating,
  gone: State.instanceCreating,
};

function instanceState({ phase }: Machine, isDeletionRequested: boolean): State {
  return isDeletionRequested ? State.instanceDeleting : STATE_BY_PHASE[phase];
}

/** Once a Node exists, its own provider id: the autoscaler compares the strings. */
export function instanceId({ id, phase, placement, providerId }: Machine): string {
  if (providerId !== undefined && providerId !== '') return providerId;
  if (placement === undefined || phase === 'requested' || phase === 'placed') {
    return placeholderProviderId(id);
  }
  return vmProviderId(placement.region, placement.vmId);
}
