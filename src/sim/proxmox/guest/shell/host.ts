// SPDX-License-Identifier: Apache-2.0
// What the interpreter needs from the machine that it runs on.
import type { Scope } from './expand.ts';
import type { Files, Stdin, Streams } from './redirects.ts';
import type { Node } from './syntax.ts';

/** What a builtin may look at and change. */
export interface ShellState {
  readonly scope: Scope;
  readonly functions: ReadonlyMap<string, Node>;
  readonly exported: Set<string>;
  errexit: boolean;
  pipefail: boolean;
  /** Run when the shell ends. */
  exitTrap: string | undefined;
  /** Per function call under way: what its local variables hid. */
  readonly locals: readonly Map<string, string | undefined>[];
  environment(): ReadonlyMap<string, string>;
  evaluate(text: string, streams: Streams): Promise<number>;
}

export interface ShellHost {
  readonly files: Files & { paths(): string[] };
  /** Runs a command that is neither a function nor a builtin of the shell. */
  execute(
    argv: readonly string[],
    streams: Streams,
    variables: ReadonlyMap<string, string>,
  ): Promise<number>;
  /** A builtin changes the shell itself; undefined when the name is none. */
  builtin(
    shell: ShellState,
    argv: readonly string[],
    streams: Streams,
  ): Promise<number> | undefined;
}

export interface ShellOptions {
  readonly variables?: ReadonlyMap<string, string>;
  readonly args?: readonly string[];
  readonly name?: string;
  readonly stdin?: string | Stdin;
  /** Of the script that started this one. */
  readonly budget?: Streams['budget'] | undefined;
}
