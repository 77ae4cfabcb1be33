// SPDX-License-Identifier: Apache-2.0
// The steps of a join through the guest agent, as data. File contents are passed on standard input, never in a
// command line, because every process in the guest and every log can read command lines.
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { type GuestFile, JOIN_UNIT } from './guest-file.ts';

export type AgentStep =
  | {
      readonly kind: 'wait';
      readonly name: string;
      readonly command: readonly string[];
      /** The command is repeated until its trimmed output is one of these. */
      readonly until: readonly string[];
      readonly everyMs: number;
    }
  | {
      readonly kind: 'run';
      readonly name: string;
      readonly command: readonly string[];
      /** Standard input. Must not be logged. */
      readonly input: string | undefined;
    };

/** The limit of Proxmox for `input-data`. */
const MAX_INPUT_BYTES = 64 * 1024;

/** `degraded`: the system is up, but some unit of the image failed, which does not affect the join. */
const WAIT: AgentStep = {
  kind: 'wait',
  name: 'wait for the system to start',
  command: ['systemctl', 'is-system-running'],
  until: ['running', 'degraded'],
  everyMs: 2000,
};

/** The file is never readable by others, not even while it is being written. */
const WRITE = 'mkdir -p "$(dirname "$1")" && umask 077 && cat > "$1" && chmod "$2" "$1"';

/** Without files there are no steps: the machine joins by other means. */
export function planAgentSteps(files: readonly GuestFile[]): Parsed<readonly AgentStep[]> {
  if (files.length === 0) return accepted([]);
  const large = files.find(({ content }) => byteLength(content) > MAX_INPUT_BYTES);
  if (large !== undefined) {
    return refused(`file '${large.path}' exceeds the guest agent's limit of 64 KiB`);
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
    run('reload systemd units', 'systemctl', 'daemon-reload'),
    // Does not wait for the unit: it retries by itself, and the Node shows when the join is done.
    run('join', 'systemctl', 'start', '--no-block', JOIN_UNIT),
  ]);
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
