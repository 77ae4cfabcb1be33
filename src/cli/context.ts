// SPDX-License-Identifier: Apache-2.0
// What commands need from the process. main.ts implements it; tests implement it with fakes.
import type { Command } from 'commander';
import type { DoctorAdapters } from '../doctor/index.ts';
import type { Machine } from '../model/machine.ts';
import type { ServeAdapters, ServeContext } from '../serve/index.ts';
import type { Colors } from './colors.ts';

export interface ProxmoxSimOptions {
  /** Number of hosts when `cluster` is absent. */
  readonly hosts: number;
  /** The cluster description file. */
  readonly cluster?: { readonly path: string; readonly text: string };
  readonly version?: '8.4' | '9.2';
  readonly speed: number;
  readonly listen: string;
  readonly tls: boolean;
  /** Serve the shells of the hosts over SSH; `authorizedKeys` is the text of such a file. */
  readonly ssh?: { readonly listen: string; readonly authorizedKeys: string };
  /** A result of `saveState`. */
  readonly state?: string;
}

export interface RunningSim {
  readonly url: string;
  /** Of the certificate; undefined without TLS. */
  readonly fingerprint: string | undefined;
  readonly version: string;
  readonly hosts: readonly string[];
  /** Where the hosts serve SSH; undefined if they do not. */
  readonly ssh:
    | readonly {
        readonly host: string;
        readonly address: string;
        readonly key: string;
        readonly fingerprint: string;
      }[]
    | undefined;
  /** Logins of the default cluster; empty when a description file defines them. */
  readonly credentials: readonly string[];
  saveState(): string;
  close(): Promise<void>;
}

export interface KubernetesSimOptions {
  /** `host:port`; port 0 takes any free port. */
  readonly listen: string;
  /** Number of nodes without a machine. */
  readonly fakeNodes: number;
}

export interface RunningKubernetesSim {
  readonly url: string;
  /** `sha256:…` of the CA's public key, as `kubeadm join` pins it. */
  readonly caCertHash: string;
  /** A kubeconfig of an administrator. */
  readonly kubeconfig: string;
  close(): Promise<void>;
}

export interface SshTarget {
  readonly host: string;
  readonly user: string;
  /** Absent: the keys of the SSH agent. */
  readonly privateKeyPath?: string | undefined;
}

export interface CliAdapters extends ServeAdapters, DoctorAdapters {
  /**
   * Logs in, runs `echo ok` and checks the answer. Accepts any host key: the VM is new. Rejects with Unreachable, TimedOut
   * or Unauthorized while that is not possible.
   */
  checkSshLogin(
    target: SshTarget,
    options: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<void>;
  /** Runs a program on this terminal; its exit code. Undefined when it is not installed. */
  runInteractive(command: string, args: readonly string[]): Promise<number | undefined>;
  /** The machines of a state database, which it neither creates nor changes. Rejects when it cannot be read. */
  readMachineRecords(path: string): Promise<readonly Machine[]>;
  /** The answer of a person; undefined without a terminal. */
  ask(question: string): Promise<string | undefined>;
  /** InvalidConfig with every problem of the description file; InvalidRequest when it cannot listen. */
  startProxmoxSim(options: ProxmoxSimOptions): Promise<RunningSim>;
  /** InvalidRequest when it cannot listen. */
  startKubernetesSim(options: KubernetesSimOptions): Promise<RunningKubernetesSim>;
}

export interface CliContext extends ServeContext {
  readonly adapters: CliAdapters;
  /** Results only, so that the output can be piped. */
  readonly out: (text: string) => void;
  /** Progress, warnings, errors. */
  readonly err: (text: string) => void;
  /** Whether a person reads what is written there. */
  readonly isTerminal: { readonly out: boolean; readonly err: boolean };
  /** Width of the terminal that results are written to; undefined for a pipe or a file. */
  readonly columns: number | undefined;
  readonly homeFolder: string;
  readonly workingFolder: string;
  /** Folders whose files may not survive a reboot. */
  readonly tempFolders: readonly string[];
}

export interface CommandHost {
  /** Its `err` prints nothing with --quiet. */
  readonly context: CliContext;
  /** Whether the command was asked for JSON: errors are JSON then too. */
  readonly isJson: boolean;
  readonly colors: Colors;
  /** Shows one line below everything printed, on a terminal only; an empty one removes it. */
  showStatus(line: string): void;
  /** Prints also with --quiet. */
  printError(text: string): void;
  /** Sets the exit code of a command that has reported its problems itself and throws nothing. */
  exitWith(code: number): void;
}

export interface ProgramHost extends CommandHost {
  /** Called before the action of a command, and before an error of its arguments. */
  begin(command: Command): void;
}
