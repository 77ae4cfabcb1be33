// SPDX-License-Identifier: Apache-2.0
// Scripts for `sh -s` on a Proxmox host. They come by standard input: the command line of a process can be read by every
// user of the host, and has a length limit.
import { quoteShell } from '../../model/quote-shell.ts';

export interface PveshCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Decoded: `/nodes/pve1/qemu/100/config`. */
  readonly path: string;
  /** A repeated name has several values. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

/** Reads the script from standard input, whatever the login shell of the user is. */
export const RUN_SCRIPT = 'exec sh -s';

/** Non-ASCII arguments need a UTF-8 locale. */
const ENVIRONMENT = 'export LC_ALL=C.UTF-8 PATH="$PATH:/usr/sbin:/usr/bin:/sbin:/bin"';

const VERBS = { GET: 'get', POST: 'create', PUT: 'set', DELETE: 'delete' } as const;

function pvesh({ method, path, parameters }: PveshCall): string {
  const options = parameters.flatMap(([name, value]) => [`--${name}`, value]);
  return ['pvesh', VERBS[method], path, ...options, '--output-format', 'json']
    .map(quoteShell)
    .join(' ');
}

export const NODE_NAME_SCRIPT = 'uname -n\n';

export function readScript(call: PveshCall): string {
  return `${ENVIRONMENT}\nexec ${pvesh(call)}\n`;
}

/**
 * pvesh waits for the task that it starts, and prints its id last. With its output on the connection, the loss of the
 * connection would abort the task. So it runs in the background with its output in files, and the script ends as soon as
 * a worker of pvesh exists, whose title is the id of the task, or when pvesh ends. A removed file stays writable.
 */
export function startScript(call: PveshCall): string {
  return `${ENVIRONMENT}
d=$(mktemp -d /run/pvescaler.XXXXXXXXXX) || exit 1
{ setsid ${pvesh(call)} >"$d/out" 2>"$d/err" </dev/null; echo $? >"$d/code"; } >/dev/null 2>&1 </dev/null &
p=$!
u=
until [ -s "$d/code" ]; do
  c=$(pgrep -P "$p")
  [ -z "$c" ] || u=$(ps -ww -o args= --ppid "$c" | grep -o '^task UPID:[^ ]*:')
  [ -z "$u" ] || break
  sleep 0.1
done
if [ -n "$u" ]; then
  printf '"%s"\\n' "\${u#task }"
  r=0
else
  cat "$d/out"
  cat "$d/err" >&2
  r=$(cat "$d/code")
fi
rm -rf "$d"
exit "$r"
`;
}

export interface GuestExec {
  readonly vmId: string;
  readonly command: readonly string[];
  /** May contain secrets: `printf` is part of the shell, so that no process has it as an argument. */
  readonly input: string | undefined;
}

export function guestExecScript({ vmId, command, input }: GuestExec): string {
  const passInput = input === undefined ? [] : ['--pass-stdin', '1'];
  const exec = ['qm', 'guest', 'exec', vmId, '--synchronous', '0', ...passInput, '--', ...command];
  const line = exec.map(quoteShell).join(' ');
  return input === undefined
    ? `${ENVIRONMENT}\nexec ${line}\n`
    : `${ENVIRONMENT}\nprintf %s ${quoteShell(input)} | ${line}\n`;
}
