// SPDX-License-Identifier: Apache-2.0
// The join through the guest agent, as data for whoever talks to it. Files travel on standard input, never in
// a command line: what a command line says, every process in the guest and every log on the way may read.
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import type { GuestFile } from './guest-file.ts';
import { JOIN_UNIT } from './paths.ts';

export type AgentStep =
  | {
      readonly kind: 'wait';
      readonly name: string;
      readonly command: readonly string[];
      /** Asked again until its output, without white space around it, is one of these. */
      readonly until: readonly string[];
      readonly everyMs: number;
    }
  | {
      readonly kind: 'run';
      readonly name: string;
      readonly command: readonly string[];
      /** For standard input; must not be logged. */
      readonly input: string | undefined;
    };

/** What Proxmox passes on as `input-data` at most. */
const INPUT_BYTES = 64 * 1024;

/** `degraded`: it is up, and some unit of the image failed, which is not for us to judge. */
const WAIT: AgentStep = {
  kind: 'wait',
  name: 'wait for the system',
  command: ['systemctl', 'is-system-running'],
  until: ['running', 'degraded'],
  everyMs: 2000,
};

/** The file is never readable for others, not even while it is being written. */
const WRITE = 'mkdir -p "$(dirname "$1")" && umask 077 && cat > "$1" && chmod "$2" "$1"';

/** No files, no steps: then the machine joins without us. */
export function agentSteps(files: readonly GuestFile[]): Parsed<readonly AgentStep[]> {
  if (files.length === 0) return accepted([]);
  const large = files.find(({ content }) => bytesOf(content) > INPUT_BYTES);
  if (large !== undefined) {
    return refused(`file '${large.path}' is too large for the guest agent (64 KiB)`);
  }
  const writes = files.map(
    ({ path, content, mode }): AgentStep => ({
      kind: 'run',
      name: `write ${path}`,
      command: ['/bin/sh', '-c', WRITE, 'write', path, mode],
      input: content,
    }),
  );
  const run = (name: string, ...command: readonly string[]): AgentStep => ({
    kind: 'run',
    name,
    command,
    input: undefined,
  });
  return accepted([
    WAIT,
    ...writes,
    run('read the units', 'systemctl', 'daemon-reload'),
    // Not waited for: the unit is tried again by itself, and the Node tells when it is done.
    run('join', 'systemctl', 'start', '--no-block', JOIN_UNIT),
  ]);
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
