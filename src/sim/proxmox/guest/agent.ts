// SPDX-License-Identifier: Apache-2.0
// The QEMU guest agent as Proxmox exposes it: the same result shapes and errors; each exit status can be read once.
import type { GuestShell } from './commands/guest-shell.ts';
import type {
  GuestAgent,
  GuestExecStatus,
  GuestNetworkInterface,
  GuestOsInfo,
} from './guest-types.ts';
import type { GuestSystem } from './system/system.ts';

export interface AgentHost {
  isRunning(): boolean;
  /** The system of the current boot; each boot creates a new one. */
  system(): GuestSystem;
  shell(): GuestShell;
}

const FIRST_PID = 900;

export class SimulatedAgent implements GuestAgent {
  readonly #host: AgentHost;
  readonly #processes = new Map<number, GuestExecStatus>();
  #lastPid = FIRST_PID;

  constructor(host: AgentHost) {
    this.#host = host;
  }

  ping(): void {
    if (!this.#host.isRunning()) throw new Error('QEMU guest agent is not running');
  }

  networkGetInterfaces(): GuestNetworkInterface[] {
    this.ping();
    return this.#host.system().network.interfaces();
  }

  getHostName(): { 'host-name': string } {
    this.ping();
    return { 'host-name': this.#host.system().hostname };
  }

  getOsInfo(): GuestOsInfo {
    this.ping();
    return this.#host.system().profile.osInfo;
  }

  readFile(path: string): Uint8Array {
    this.ping();
    const bytes = this.#host.system().files.bytes(path);
    if (bytes === undefined) throw cannotOpen(path, 'r');
    return bytes;
  }

  writeFile(path: string, content: Uint8Array): void {
    this.ping();
    const { files } = this.#host.system();
    const parent = path.replace(/\/[^/]*$/, '') || '/';
    if (!path.startsWith('/') || !files.isDirectory(parent)) throw cannotOpen(path, 'wb');
    files.write(path, content);
    this.#host.system().notifyChange();
  }

  exec(command: readonly string[], input?: string): number {
    this.ping();
    const [program = ''] = command;
    if (!this.#host.shell().hasProgram(program)) {
      const reason = `Failed to execute child process “${program}” (No such file or directory)`;
      throw new Error(`Agent error: Guest agent command failed, error was '${reason}'`);
    }
    this.#lastPid += 1 + this.#host.system().input.random.integer(3);
    this.#processes.set(this.#lastPid, { exited: 0 });
    void this.#run(this.#lastPid, command, input);
    return this.#lastPid;
  }

  execStatus(pid: number): GuestExecStatus {
    this.ping();
    const status = this.#processes.get(pid);
    if (status === undefined) throw new Error("Agent error: Invalid parameter 'pid'");
    if (status.exited === 1) this.#processes.delete(pid);
    return status;
  }

  /** The guest is off: its processes no longer exist. */
  clearProcesses(): void {
    this.#processes.clear();
  }

  async #run(pid: number, command: readonly string[], input: string | undefined): Promise<void> {
    const [system, shell] = [this.#host.system(), this.#host.shell()];
    try {
      const { code, out, err } = await shell.runProgram(
        command,
        input === undefined ? {} : { stdin: input },
      );
      const text = command.join(' ');
      system.history.commandsRun.push({ source: 'agent exec', text, exitCode: code });
      if (!this.#processes.has(pid)) return;
      this.#processes.set(pid, {
        exited: 1,
        exitcode: code,
        ...(out === '' ? {} : { 'out-data': out }),
        ...(err === '' ? {} : { 'err-data': err }),
      });
      system.notifyChange();
    } catch (error) {
      // A power-off aborts the command; its exit status can no longer be read.
      if (!system.isOff) throw error;
    }
  }
}

function cannotOpen(path: string, mode: string): Error {
  return new Error(
    `Agent error: failed to open file '${path}' (mode: '${mode}'): No such file or directory`,
  );
}
