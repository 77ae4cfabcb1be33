// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { parseDuration } from '../model/duration.ts';
import { InvalidRequest } from '../ports/errors.ts';

export interface TimeoutOptions {
  readonly timeout?: string;
}

const NANOSECONDS = 1_000_000n;

/** For commands that see something done. */
export function withTimeoutOption(command: Command): Command {
  return command.option(
    '--timeout <duration>',
    'how long to wait for the end, such as 10m; what was asked for is kept (default: as long as it takes)',
  );
}

/** Undefined: as long as it takes. */
export function timeoutMsOf({ timeout }: TimeoutOptions): number | undefined {
  if (timeout === undefined) return undefined;
  const parsed = parseDuration(timeout);
  if (!parsed.ok) throw new InvalidRequest('USAGE', `--timeout ${timeout}: ${parsed.problem}`);
  const ms = Number(parsed.value.nanoseconds / NANOSECONDS);
  if (ms <= 0) throw new InvalidRequest('USAGE', `--timeout ${timeout} is no time at all`);
  return ms;
}
