// SPDX-License-Identifier: Apache-2.0
import { createInterface } from 'node:readline/promises';

let last: Promise<unknown> = Promise.resolve();

/** Asks a person yes or no, one question at a time. Undefined if nobody is at a terminal. */
export function terminalQuestion(): ((question: string) => Promise<boolean>) | undefined {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  return (question) => {
    const answer = last.then(() => askYesNo(question));
    last = answer.catch(() => undefined);
    return answer;
  };
}

async function askYesNo(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
