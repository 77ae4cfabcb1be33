// SPDX-License-Identifier: Apache-2.0
// Converts the text of a variable or flag to a config value. The schema validates the result; only what is
// specific to variables is checked here.
import { accepted, type Parsed, refused } from '../../model/parsed.ts';
import { quoteValue } from '../secrets/detect-secret.ts';
import { parseIpAddress } from '../values/ip-address.ts';
import { formatListenAddress, parseListenAddress } from '../values/listen-address.ts';
import type { ConversionInput, ConvertedValue } from './override-rule.ts';

type Convert = (input: ConversionInput) => Parsed<ConvertedValue>;

export const asText: Convert = ({ text }) => accepted({ value: text });

export const asList: Convert = ({ text }) =>
  accepted({
    value: text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  });

/** A list with one item. A public key contains blanks and possibly commas, so the text is not split. */
export const asSingleItemList: Convert = ({ text }) => accepted({ value: [text] });

const TRUE = new Set(['1', 't', 'true', 'y', 'yes', 'on']);
const FALSE = new Set(['0', 'f', 'false', 'n', 'no', 'off']);

/**
 * Accepts the values for true of the other systems, and their opposites. Other text, which meant false there,
 * is refused.
 */
export const asBoolean: Convert = ({ text }) => {
  const word = text.toLowerCase();
  if (TRUE.has(word)) return accepted({ value: true });
  if (FALSE.has(word)) return accepted({ value: false });
  return refused('must be true or false (also 1, t, y, yes, on; 0, f, n, no, off)');
};

/**
 * Seconds without a unit. Values below the floor are raised to it with a warning; the source system did so
 * silently.
 */
export function asSeconds(floor: number): Convert {
  return ({ text }) => {
    if (!/^\d{1,9}$/.test(text)) return refused('must be a whole number of seconds');
    const seconds = Math.max(Number(text), floor);
    return accepted({
      value: `${seconds}s`,
      ...(seconds !== Number(text) && { warning: `is below the minimum; ${floor} s is used` }),
    });
  };
}

/** Replaces the host of a listen address and keeps the port. */
export const asListenHost: Convert = ({ text, current }) => {
  const bare = text.replace(/^\[(.*)\]$/, '$1');
  return joinListenAddress(bare, currentPort(current));
};

/** Replaces the port of a listen address and keeps the host. */
export const asListenPort: Convert = ({ text, current }) => {
  if (!/^\d{1,5}$/.test(text) || Number(text) === 0) {
    return refused('must be a port, 1 to 65535');
  }
  const parsed = typeof current === 'string' ? parseListenAddress(current) : undefined;
  return joinListenAddress(parsed?.ok === true ? parsed.value.host : '', Number(text));
};

const DEFAULT_PORT = 50_051;

function currentPort(present: unknown): number {
  const parsed = typeof present === 'string' ? parseListenAddress(present) : undefined;
  return parsed?.ok === true ? parsed.value.port : DEFAULT_PORT;
}

function joinListenAddress(host: string, port: number): Parsed<ConvertedValue> {
  const text = formatListenAddress({ host, port });
  const parsed = parseListenAddress(text);
  return parsed.ok ? accepted({ value: text }) : parsed;
}

const LEVELS: Readonly<Record<string, string>> = {
  notset: 'trace',
  warning: 'warn',
  critical: 'error',
  fatal: 'error',
};

/** Python log level names such as `INFO` and `WARNING`, case-insensitive. */
export const asLogLevel: Convert = ({ text }) => {
  const word = text.toLowerCase();
  return accepted({ value: Object.hasOwn(LEVELS, word) ? LEVELS[word] : word });
};

/** A host or address without scheme means the API on its default port. */
export const asEndpoint: Convert = ({ text }) => {
  if (text.includes('://')) return accepted({ value: [text] });
  const [, host, port = ''] = /^(.*?)(:\d+)?$/.exec(text) ?? [];
  const address = parseIpAddress(text);
  if (address.ok && address.value.family === 6)
    return accepted({ value: [`https://[${text}]:8006`] });
  return accepted({ value: [`https://${host ?? text}${port === '' ? ':8006' : port}`] });
};

/** The config refers to the variable; the secret is not copied. */
export const asVariableName: Convert = ({ name }) => accepted({ value: name });

/** The same for a key whose value is a mapping with the source of a secret. */
export const asSecretInVariable: Convert = ({ name }) => accepted({ value: { secretEnv: name } });

export const asMode: Convert = ({ text }) =>
  text === 'standalone' || text === 'externalgrpc'
    ? accepted({ value: text })
    : refused(`must be standalone or externalgrpc, not ${quoteValue(text)}`);
