// SPDX-License-Identifier: Apache-2.0
// The terminal of a person: programs that use it, and questions.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline/promises';

/** Resolves with the exit code of a program that uses this terminal; with undefined when it is not installed. */
export function runInteractive(
  command: string,
  args: readonly string[],
): Promise<number | undefined> {
  const child = spawn(command, args, { stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') resolve(undefined);
      else reject(error);
    });
    // 128 + signal number is the convention of shells; SIGINT is what a person sends.
    child.once('close', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : 1)));
  });
}

let last: Promise<unknown> = Promise.resolve();

/** Asks a person yes or no, one question at a time. Undefined without a terminal. */
export function terminalQuestion(): ((question: string) => Promise<boolean>) | undefined {
  if (!isTerminal()) return undefined;
  return (question) => {
    const answer = last.then(async () =>
      /^y(es)?$/i.test(((await ask(`${question} [y/N] `)) ?? '').trim()),
    );
    last = answer.catch(() => undefined);
    return answer;
  };
}

function isTerminal(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Undefined without a terminal, or when the person ends the input. */
export async function ask(question: string): Promise<string | undefined> {
  if (!isTerminal()) return undefined;
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(question);
  } catch {
    return undefined;
  } finally {
    lines.close();
  }
}
