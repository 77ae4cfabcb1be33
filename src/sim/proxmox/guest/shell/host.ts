// SPDX-License-Identifier: Apache-2.0
// What the interpreter needs from the machine that it runs on.
import type { Interpreter } from './interpreter.ts';
import type { Files, Streams } from './redirects.ts';

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
    shell: Interpreter,
    argv: readonly string[],
    streams: Streams,
  ): Promise<number> | undefined;
}

export interface ShellOptions {
  readonly variables?: ReadonlyMap<string, string>;
  readonly args?: readonly string[];
  readonly name?: string;
  readonly stdin?: string;
}
