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

/** A join as data: the files on disk, and the part of the join script that performs it. */
export interface JoinPlan {
  readonly files: readonly GuestFile[];
  /** Removed when the join is done. */
  readonly secrets: readonly GuestFile[];
  readonly packages: readonly string[];
  /**
   * Shell, run under `set -eu`. `$state`, `fail` and `wait_for` are defined. After a failure the whole script
   * is retried later.
   */
  readonly script: string;
  /** Shell, run when the join is done, and again after a crash in between. */
  readonly afterJoin: string;
  /** Services that pull images or open outgoing connections and therefore need the proxy. */
  readonly services: readonly string[];
}

export type Recipe<Join> = (join: Join, node: JoiningNode) => Parsed<JoinPlan>;
