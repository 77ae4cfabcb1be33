// SPDX-License-Identifier: Apache-2.0
// Options of commands that delete machines.
import type { Command } from 'commander';

export interface DrainOptions {
  /** False with --no-drain. */
  readonly drain: boolean;
  readonly drainTimeout?: string;
}

export function withDrainOptions(command: Command): Command {
  return command
    .option('--no-drain', 'delete machines with the pods on their Nodes, without evicting them')
    .option(
      '--drain-timeout <duration>',
      "maximum duration of a drain (default: the pool's scaleDown.drainTimeout)",
    );
}
