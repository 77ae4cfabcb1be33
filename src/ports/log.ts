// SPDX-License-Identifier: Apache-2.0

export type LogFacts = Readonly<Record<string, unknown>>;

/**
 * What an operator reads while the program runs. Never rejects or throws. Secrets do not belong here; what looks
 * like one is masked all the same.
 */
export interface Log {
  debug(message: string, facts?: LogFacts): void;
  info(message: string, facts?: LogFacts): void;
  warn(message: string, facts?: LogFacts): void;
  error(message: string, facts?: LogFacts): void;
  /** The same log with these facts in each line. */
  with(facts: LogFacts): Log;
}
