// SPDX-License-Identifier: Apache-2.0
// Ends what a test process started, whatever way that process goes. A shell beside us reads the ids from a pipe; the pipe
// closes when we exit, crash or are killed, and then it kills whatever is still on its list and removes the folders.
import { type ChildProcess, spawn } from 'node:child_process';

const SCRIPT = `
while read -r word value; do
  case "$word" in
    pid) pids="$pids $value " ;;
    gone) pids=$(printf '%s' "$pids" | sed "s/ $value / /g") ;;
    folder) folders="$folders
$value" ;;
  esac
done
for pid in $pids; do kill -9 "$pid" 2>/dev/null; done
printf '%s\\n' "$folders" | while read -r folder; do
  case "$folder" in /*) rm -rf "$folder" ;; esac
done
`;

let shell: ChildProcess | undefined;

function tell(line: string): void {
  if (shell === undefined) {
    // A session of its own: Ctrl-C reaches us and not the one that cleans up after us.
    shell = spawn('/bin/sh', ['-c', SCRIPT], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    shell.unref();
    const { stdin } = shell;
    if (stdin !== null && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref();
  }
  shell.stdin?.write(`${line}\n`);
}

/** Killed when this process ends, unless it is gone by then. */
export function reap(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  tell(`pid ${pid}`);
  child.once('exit', () => tell(`gone ${pid}`));
}

/** Removed when this process ends. */
export function reapFolder(path: string): void {
  tell(`folder ${path}`);
}
