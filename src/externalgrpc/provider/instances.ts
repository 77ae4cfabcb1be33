// SPDX-License-Identifier: Apache-2.0
// A machine as the Cluster Autoscaler sees it, from the moment it was asked for until nothing of it is left.
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { FleetView } from '../../fleet/index.ts';
import type { Machine, MachineFailure } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import { placeholderProviderId, vmProviderId } from '../../model/provider-id.ts';
import { ERROR_CODES, type ErrorClass } from '../../ports/error-codes.ts';
import {
  type InstanceSchema,
  InstanceStatus_InstanceState as State,
} from '../gen/externalgrpc/cloud_provider_pb.js';

export type InstanceShape = MessageInitShape<typeof InstanceSchema>;

const OUT_OF_RESOURCES = 1;
const OTHER_ERROR = 99;

/** Go's client takes no answer of more than 4 MiB: ten thousand failed creations with their reasons are 3.3. */
const REASON_MAX_BYTES = 256;

/** Of machines that were asked for and have no record. */
export function comingInstances(pool: string, { index, machines }: FleetView): InstanceShape[] {
  return index
    .membersOf(pool)
    .filter(({ id }) => machines.get(id) === undefined)
    .map(({ id }) => ({
      id: placeholderProviderId(id),
      status: { instanceState: State.instanceCreating },
    }));
}

/**
 * A creation that failed and that nobody has taken note of. It counts towards the target as long as it is shown: the
 * autoscaler takes a scale-up whose target is reached for a success, and backs no group off for it.
 */
export function isUnnoticedFailure({ phase, failure }: Machine, isLeaving: boolean): boolean {
  return failure !== undefined && phase !== 'gone' && !isLeaving;
}

/** Undefined for what is gone or was called off. */
export function instanceOf(machine: Machine, isLeaving: boolean): InstanceShape | undefined {
  const { phase, failure } = machine;
  if (phase === 'gone') return undefined;
  if (failure !== undefined) return isLeaving ? undefined : failedInstance(machine.id, failure);
  // Nothing was made of it, and nothing will be.
  if (isLeaving && (phase === 'requested' || phase === 'placed')) return undefined;
  return { id: instanceId(machine), status: { instanceState: stateOf(machine, isLeaving) } };
}

/** The only form in which the autoscaler takes note: being created, with an error. */
function failedInstance(id: MachineId, { code, message }: MachineFailure): InstanceShape {
  return {
    // Not its VM's: that id may be another machine's before this one is forgotten.
    id: placeholderProviderId(id),
    status: {
      instanceState: State.instanceCreating,
      errorInfo: {
        errorCode: code,
        errorMessage: shortened(message),
        instanceErrorClass: classOf(code) === 'NoCapacity' ? OUT_OF_RESOURCES : OTHER_ERROR,
      },
    },
  };
}

/** The whole of it is in the events and in the record. */
function shortened(message: string): string {
  if (message.length * 3 <= REASON_MAX_BYTES) return message;
  const bytes = Buffer.from(message);
  if (bytes.length <= REASON_MAX_BYTES) return message;
  // What is left of a character that the cut went through goes too.
  const kept = new TextDecoder('utf-8', { ignoreBOM: true }).decode(
    bytes.subarray(0, REASON_MAX_BYTES - 3),
    { stream: true },
  );
  return `${kept}…`;
}

const CLASSES: ReadonlyMap<string, ErrorClass> = new Map(
  Object.entries(ERROR_CODES).map(([code, facts]) => [code, facts.class]),
);

function classOf(code: string): ErrorClass | undefined {
  return CLASSES.get(code);
}

function stateOf({ phase }: Machine, isLeaving: boolean): State {
  if (isLeaving || phase === 'deleting') return State.instanceDeleting;
  switch (phase) {
    case 'booting':
    case 'joining':
    case 'ready':
    case 'draining':
      return State.instanceRunning;
    default:
      return State.instanceCreating;
  }
}

/** Once a Node exists, what it says; the autoscaler compares letter by letter. */
export function instanceId({ id, phase, placement, providerId }: Machine): string {
  if (providerId !== undefined && providerId !== '') return providerId;
  if (placement === undefined || phase === 'requested' || phase === 'placed') {
    return placeholderProviderId(id);
  }
  return vmProviderId(placement.region, placement.vmId);
}
