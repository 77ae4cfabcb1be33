// SPDX-License-Identifier: Apache-2.0

export type LogFields = Readonly<Record<string, unknown>>;

/**
 * The log for operators. Never throws. Callers must not log secrets; text that looks like a secret is masked
 * nevertheless.
 */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** The same log with these fields in each line. */
  with(fields: LogFields): Log;
}
