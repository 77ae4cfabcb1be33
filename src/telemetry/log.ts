// SPDX-License-Identifier: Apache-2.0
// The log: one JSON object per line, or text for people. Secrets are kept out twice: by the names of fields, and by
// what a line looks like when it is about to be written.
import { type LevelWithSilent, type Logger, pino } from 'pino';
import { PvescalerError } from '../ports/errors.ts';
import type { Log, LogFacts } from '../ports/log.ts';
import { masked } from './mask.ts';
import { textLine } from './text-line.ts';

export interface LogOptions {
  readonly level: LevelWithSilent;
  readonly format: 'json' | 'text';
  /** Gets whole lines. */
  readonly write: (line: string) => void;
  /** Wall clock. */
  readonly now: () => number;
  /** In each line. */
  readonly facts?: LogFacts;
}

/** Fields of these names are never shown, at the top or below any other field. */
const SECRET_FIELDS = [
  'token',
  'secret',
  'password',
  'ticket',
  'authorization',
  'cookie',
  'userData',
  'input',
];

export function createLog({ level, format, write, now, facts = {} }: LogOptions): Log {
  const logger = pino(
    {
      level,
      base: facts,
      timestamp: () => `,"time":"${new Date(now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      messageKey: 'message',
      redact: {
        paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
        censor: '••••',
      },
      serializers: { error: describeError },
    },
    { write: (line: string) => write(format === 'json' ? masked(line) : masked(textLine(line))) },
  );
  return overPino(logger);
}

function overPino(logger: Logger): Log {
  return {
    debug: (message, facts = {}) => logger.debug(facts, message),
    info: (message, facts = {}) => logger.info(facts, message),
    warn: (message, facts = {}) => logger.warn(facts, message),
    error: (message, facts = {}) => logger.error(facts, message),
    with: (facts) => overPino(logger.child(facts)),
  };
}

/** Class, code and words of ours; of a fault also where it happened. Causes may quote a peer and are left out. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (!(error instanceof PvescalerError)) {
    return { class: error.name, message: error.message, stack: error.stack };
  }
  const { code, message, hint, facts } = error;
  return {
    class: error.class,
    code,
    message,
    hint,
    ...(Object.keys(facts).length > 0 && { facts }),
    ...(error.class === 'Bug' && { stack: error.stack }),
  };
}
