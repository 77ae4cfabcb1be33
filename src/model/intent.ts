// SPDX-License-Identifier: Apache-2.0
// An intent is what somebody asked the fleet for: written by a face in one atomic write before it answers,
// carried out by whoever holds the reconcile lease. The ids of the machines are part of it, so that carrying
// it out twice makes nothing twice.

import type { MachineSize } from './machine.ts';
import type { MachineId } from './machine-id.ts';

interface IntentCommon {
  readonly id: string;
  readonly pool: string;
  readonly requestedAt: number;
  /** Who asked: `cluster-autoscaler`, `autoscaler`, `cli`, `minimum`. */
  readonly requestedBy: string;
  /** One sentence: why. */
  readonly reason: string;
  /** `done` = every machine it names has a record that carries the wish; the intent has no more effect. */
  readonly state: 'open' | 'done';
}

export interface CreateIntent extends IntentCommon {
  readonly kind: 'create';
  readonly machines: readonly MachineId[];
  readonly size: MachineSize;
}

export interface DeleteIntent extends IntentCommon {
  readonly kind: 'delete';
  readonly machines: readonly MachineId[];
}

/** Calls off creations of which nothing has been made yet; never removes an existing VM. */
export interface CancelIntent extends IntentCommon {
  readonly kind: 'cancel';
  readonly machines: readonly MachineId[];
}

export type Intent = CreateIntent | DeleteIntent | CancelIntent;
