// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { parseDuration } from '../model/duration.ts';
import { InvalidRequest } from '../ports/errors.ts';

export interface TimeoutOptions {
  readonly timeout?: string;
}

const NANOSECONDS_PER_MS = 1_000_000n;

/** For commands that wait until their request is done. */
export function withTimeoutOption(command: Command): Command {
  return command.option(
    '--timeout <duration>',
    'stop waiting after this time, for instance 10m; the request stays saved (default: no limit)',
  );
}

/** Undefined: no limit. */
export function parseTimeoutMs({ timeout }: TimeoutOptions): number | undefined {
  if (timeout === undefined) return undefined;
  const parsed = parseDuration(timeout);
  if (!parsed.ok) throw new InvalidRequest('USAGE', `--timeout ${timeout}: ${parsed.problem}`);
  const ms = Number(parsed.value.nanoseconds / NANOSECONDS_PER_MS);
  if (ms <= 0) throw new InvalidRequest('USAGE', `--timeout ${timeout} is not above zero`);
  return ms;
}
