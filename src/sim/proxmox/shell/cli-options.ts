// SPDX-License-Identifier: Apache-2.0
// Options of qm and pvesh as Perl's Getopt::Long reads them: `--name value`, `--name=value`, `-name value`, names may be
// abbreviated, a later value replaces an earlier one, booleans have words.
import type { ParamFact } from '../../../proxmox/wire-facts/index.ts';
import { ApiError } from '../api-error.ts';
import { findParamFact, formatScalar, type ParamValue } from '../schema/verify.ts';

export interface CliOptions {
  readonly params: Readonly<Record<string, ParamValue>>;
  /** Words that are no options. */
  readonly operands: readonly string[];
}

type Facts = Readonly<Record<string, ParamFact>>;

/** Lists that may be repeated and are joined. */
const LISTS = new Set(['tags', 'delete', 'nameserver', 'vmlist']);

const TRUE = /^(1|on|yes|true)$/i;
const FALSE = /^(0|off|no|false)$/i;

/** A missing operand is reported before values are checked. */
export function parseCliOptions(
  words: readonly string[],
  facts: Facts,
  operandCount = 0,
): CliOptions {
  const params: Record<string, ParamValue> = {};
  const operands: string[] = [];
  const rest = [...words];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') {
      operands.push(...rest.splice(0));
      continue;
    }
    const [, given, attached] = /^--?([A-Za-z][\w-]*)(?:=(.*))?$/s.exec(word) ?? [];
    if (given === undefined) {
      operands.push(word);
      continue;
    }
    const name = completeName(given, facts);
    const isFlag = findParamFact(facts, name)?.type === 'boolean';
    const value = attached ?? takeValue(given, isFlag, rest);
    const isList = findParamFact(facts, name)?.type === 'array';
    params[name] = addValue(params[name], name, isList ? [value] : value);
  }
  if (operands.length < operandCount) throw new ApiError(400, 'not enough arguments\n');
  return { params: parseBooleans(params, facts), operands };
}

/** A bare boolean takes the next word as its value, unless that is an option. */
function takeValue(given: string, isFlag: boolean, rest: string[]): string {
  const isBare = isFlag && (rest[0]?.startsWith('-') ?? true);
  const value = isBare ? '1' : rest.shift();
  if (value === undefined) throw unparsable(`Option ${given} requires an argument\n`);
  return value;
}

function completeName(given: string, facts: Facts): string {
  if (findParamFact(facts, given) !== undefined) return given;
  const longer = Object.keys(facts).filter((name) => !name.includes('[') && name.startsWith(given));
  const [only] = longer;
  if (longer.length === 1 && only !== undefined) return only;
  throw unparsable(
    longer.length === 0
      ? `Unknown option: ${given}\n`
      : `Option ${given} is ambiguous (${longer.sort().join(', ')})\n`,
  );
}

function parseBooleans(params: CliOptions['params'], facts: Facts): CliOptions['params'] {
  const entries = Object.entries(params).map(([name, value]) => {
    const isFlag = findParamFact(facts, name)?.type === 'boolean';
    return [name, isFlag ? parseBoolean(formatScalar(value)) : value] as const;
  });
  return Object.fromEntries(entries);
}

function parseBoolean(value: string): string {
  if (TRUE.test(value)) return '1';
  if (FALSE.test(value)) return '0';
  throw new ApiError(400, 'unable to parse boolean option\n');
}

function addValue(known: ParamValue | undefined, name: string, value: ParamValue): ParamValue {
  if (known === undefined) return value;
  if (Array.isArray(known) && Array.isArray(value)) return [...known, ...value];
  return LISTS.has(name) ? `${formatScalar(known)},${formatScalar(value)}` : value;
}

function unparsable(reason: string): ApiError {
  return new ApiError(400, `unable to parse option\n`, { '': reason });
}
