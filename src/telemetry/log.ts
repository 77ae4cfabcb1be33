// SPDX-License-Identifier: Apache-2.0
// The log: one JSON object or one line of text per entry. Secrets are removed twice: by field name, and by pattern in the
// finished line.
import { type LevelWithSilent, type Logger, pino } from 'pino';
import { PvescalerError } from '../ports/errors.ts';
import type { Log, LogFields } from '../ports/log.ts';

export interface LogOptions {
  readonly level: LevelWithSilent;
  readonly format: 'json' | 'text';
  /** Receives whole lines. */
  readonly write: (line: string) => void;
  /** Wall clock. */
  readonly now: () => number;
  /** Added to each line. */
  readonly fields?: LogFields;
}

/** Fields with these names are masked, at the top level and up to two levels below. */
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

export function createLog({ level, format, write, now, fields = {} }: LogOptions): Log {
  const logger = pino(
    {
      level,
      base: fields,
      timestamp: () => `,"time":"${new Date(now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      messageKey: 'message',
      redact: {
        paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
        censor: '••••',
      },
      serializers: { error: describeError },
    },
    {
      write: (line: string) => write(maskSecrets(format === 'json' ? line : formatTextLine(line))),
    },
  );
  return wrapPino(logger);
}

function wrapPino(logger: Logger): Log {
  return {
    debug: (message, fields = {}) => logger.debug(fields, message),
    info: (message, fields = {}) => logger.info(fields, message),
    warn: (message, fields = {}) => logger.warn(fields, message),
    error: (message, fields = {}) => logger.error(fields, message),
    with: (fields) => wrapPino(logger.child(fields)),
  };
}

/** Includes the stack only for bugs. Omits causes, because they may quote data of a peer. */
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

/** Converts a JSON line to text: time, level, message, then the other fields. */
function formatTextLine(json: string): string {
  const parsed: unknown = JSON.parse(json);
  const fields = new Map(Object.entries(parsed ?? {}));
  const take = (name: string) => {
    const value: unknown = fields.get(name);
    fields.delete(name);
    return typeof value === 'string' ? value : '';
  };
  const head = [take('time'), take('level').toUpperCase().padEnd(5), take('message')];
  const rest = [...fields].map(([name, value]) => `${name}=${formatValue(value)}`);
  return `${[...head, ...rest].join(' ')}\n`;
}

function formatValue(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=]+$/.test(value)) return value;
  return JSON.stringify(value);
}

// Masks text that looks like a secret, in case code logs one by mistake.

const MASK = '••••';

const SECRET_PATTERNS: readonly RegExp[] = [
  // Join tokens of k3s and RKE2, with or without a bootstrap token at the end.
  /\bK10[0-9a-f]{64}::[^\s"'\\]+/g,
  // Bootstrap tokens. Also masks host names of the same form.
  /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g,
  /PVEAPIToken=[^\s"'\\]+/g,
  /\bPVE:[^\s"'\\]+:[0-9A-F]{8}::[^\s"'\\]+/g,
  /\bBearer\s+[^\s"'\\]+/gi,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g,
];

function maskSecrets(text: string): string {
  return SECRET_PATTERNS.reduce((line, pattern) => line.replace(pattern, MASK), text);
}
