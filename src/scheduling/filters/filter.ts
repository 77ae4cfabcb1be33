// SPDX-License-Identifier: Apache-2.0
import type { Reason } from '../reasons.ts';
import type { Candidate } from '../state/candidate.ts';
import type { Slot } from '../state/slot.ts';
import type { World } from '../state/world.ts';

/** Undefined: nothing against it. */
export type Filter = (candidate: Candidate, slot: Slot, world: World) => Reason | undefined;
