// SPDX-License-Identifier: Apache-2.0
// The interface between the interpreter and the guest that it runs in.
import type { Scope } from './expand.ts';
import type { ShellFiles, Stdin, Streams } from './redirects.ts';
import type { ShellNode } from './syntax.ts';

/** The shell state that builtins read and change. */
export interface ShellState {
  readonly scope: Scope;
  readonly functions: ReadonlyMap<string, ShellNode>;
  readonly exported: Set<string>;
  errexit: boolean;
  pipefail: boolean;
  /** Script of `trap … EXIT`. */
  exitTrap: string | undefined;
  /** For each active function call: the outer values of its local variables. */
  readonly locals: readonly Map<string, string | undefined>[];
  environment(): ReadonlyMap<string, string>;
  evaluate(text: string, streams: Streams): Promise<number>;
}

export interface ShellHost {
  readonly files: ShellFiles & { paths(): string[] };
  /** Runs a command that is neither a function nor a builtin of the shell. */
  execute(
    argv: readonly string[],
    streams: Streams,
    variables: ReadonlyMap<string, string>,
  ): Promise<number>;
  /** Runs a builtin; undefined when the name is not a builtin. */
  builtin(
    shell: ShellState,
    argv: readonly string[],
    streams: Streams,
  ): Promise<number> | undefined;
  /** Starts a command in the background and returns its process id. Absent: the shell waits for the command. */
  startBackground?(run: (processId: number) => Promise<number>): number;
}

export interface ShellOptions {
  readonly variables?: ReadonlyMap<string, string>;
  readonly args?: readonly string[];
  readonly name?: string;
  readonly stdin?: string | Stdin;
  /** The step budget of the script that started this one. */
  readonly budget?: Streams['budget'] | undefined;
}
