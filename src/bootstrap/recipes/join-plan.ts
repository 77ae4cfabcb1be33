// SPDX-License-Identifier: Apache-2.0
import type { Parsed } from '../../model/parsed.ts';
import type { GuestFile } from '../guest-file.ts';
import type { Registration } from '../registration.ts';
import type { MachineInput, PoolInput } from '../seed-input.ts';

export interface JoiningNode {
  readonly machine: MachineInput;
  readonly architecture: PoolInput['architecture'];
  readonly registration: Registration;
}

/** One join as data: what lies on the disk before, and the part of the join script that does it. */
export interface JoinPlan {
  readonly files: readonly GuestFile[];
  /** Removed when the join is done. */
  readonly secrets: readonly GuestFile[];
  readonly packages: readonly string[];
  /**
   * Shell, run under `set -eu` with `$state`, `fail` and `wait_for` at hand; any failure is tried again later,
   * from the top.
   */
  readonly script: string;
  /** Services that pull images or call out, and so have to know the proxy. */
  readonly services: readonly string[];
}

export type Recipe<Join> = (join: Join, node: JoiningNode) => Parsed<JoinPlan>;
