// SPDX-License-Identifier: Apache-2.0
// Ends the programs that a test process started, however that process ends. A shell reads their process ids from a pipe.
// The pipe closes when the test process exits, crashes or is killed; then the shell kills them and removes the folders.
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

function sendToReaper(line: string): void {
  if (shell === undefined) {
    // A session of its own, so that Ctrl-C ends the test process and not this shell.
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

/** Kills the child when this process ends, unless it has exited. */
export function killOnExit(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  sendToReaper(`pid ${pid}`);
  child.once('exit', () => sendToReaper(`gone ${pid}`));
}

/** Removes the folder when this process ends. */
export function removeFolderOnExit(path: string): void {
  sendToReaper(`folder ${path}`);
}
