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
  return timeout === undefined ? undefined : parseDurationMs('--timeout', timeout);
}

/** The value of an option; above zero. */
export function parseDurationMs(option: string, text: string): number {
  const parsed = parseDuration(text);
  if (!parsed.ok) throw new InvalidRequest('USAGE', `${option} ${text}: ${parsed.problem}`);
  const ms = Number(parsed.value.nanoseconds / NANOSECONDS_PER_MS);
  if (ms <= 0) throw new InvalidRequest('USAGE', `${option} ${text} is not above zero`);
  return ms;
}
