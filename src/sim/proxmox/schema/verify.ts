// SPDX-License-Identifier: Apache-2.0
// Parameter verification: checks every parameter of a call against the table of facts and reports all errors at
// once, with Proxmox' messages. Knows nothing of what an endpoint does.
import {
  type ApiVersion,
  type EndpointFact,
  INDEX_RANGES,
  type ParamFact,
} from '../../../proxmox/wire-facts/index.ts';
import { verifyCpu } from './cpu-model.ts';
import { verifyFormat } from './formats.ts';
import { parseProperties, propertyFields } from './property-string.ts';

export type ParamValue =
  | string
  | number
  | boolean
  | readonly ParamValue[]
  | { readonly [key: string]: ParamValue };
export type Params = Readonly<Record<string, ParamValue>>;
type Errors = Record<string, string>;
type Fields = Readonly<Record<string, ParamFact>>;

const NOT_DEFINED =
  'property is not defined in schema and the schema does not allow additional properties';
// Perl's `$` also matches before a line break at the end.
const INTEGER = /^[+-]?\d+\n?$/;
const NUMBER = /^[+-]?(?:\d+\.\d+|\d+\.|\.\d+|\d+)(?:[eE][+-]?\d+)?\n?$/;

const SCALARS: Readonly<Record<string, RegExp>> = {
  boolean: /^[01]$/,
  integer: INTEGER,
  number: NUMBER,
};

export function formatScalar(value: ParamValue): string {
  if (typeof value === 'boolean') return value ? '1' : '0';
  return typeof value === 'object' ? '' : String(value);
}

function addError(errors: Errors, path: string, text: string): void {
  const known = errors[path];
  // Proxmox joins two errors of one parameter by a backslash and an n, not by a line break.
  errors[path] = known === undefined ? text : `${known}\\n${text}`;
}

/** `net3` has the fact of `net[n]` when the index is in range. */
export function findParamFact(fields: Fields, name: string): ParamFact | undefined {
  const plain = fields[name];
  if (plain !== undefined) return plain;
  const match = /^([a-z]+)(0|[1-9]\d*)$/.exec(name);
  const [, stem = '', index = ''] = match ?? [];
  if (match === null || Number(index) > (INDEX_RANGES[stem] ?? -1)) return undefined;
  return fields[`${stem}[n]`];
}

function perlReferenceType(value: ParamValue): string {
  if (Array.isArray(value)) return 'ARRAY';
  return typeof value === 'object' ? 'HASH' : '';
}

function checkType(type: string, value: ParamValue): string | undefined {
  const kind = perlReferenceType(value);
  if (type === 'array') return kind === 'ARRAY' ? undefined : "type check ('array') failed";
  if (type === 'object') return kind === 'HASH' ? undefined : "type check ('object') failed";
  if (kind !== '') return `type check ('${type}') failed - got ${kind}`;
  if (typeof value === 'boolean') {
    return type === 'boolean' ? undefined : `type check ('${type}') failed - got JSON::PP::Boolean`;
  }
  const text = formatScalar(value);
  return SCALARS[type]?.test(text) === false
    ? `type check ('${type}') failed - got '${text}'`
    : undefined;
}

/** Perl's `(?^i:…)` groups carry their own flags; the table uses only `i` and `u`. */
function compilePattern(source: string): RegExp {
  const plain = source
    .replaceAll('(?^i:', '(?i:')
    .replaceAll('(?^u:', '(?:')
    .replaceAll('(?^:', '(?:')
    .replaceAll('{,', '{0,');
  return new RegExp(`^${plain}\n?$`);
}

/** Where a value is, and in which version. */
interface At {
  readonly path: string;
  readonly version: ApiVersion;
}

function checkFormat(fact: ParamFact, text: string, at: At): string | undefined {
  try {
    if (fact.propertyString !== undefined) verifyProperties(fact.propertyString, text, at);
    else if (fact.format !== undefined) verifyFormat(fact.format, text);
    return undefined;
  } catch (error) {
    return `invalid format - ${error instanceof Error ? error.message : ''}`;
  }
}

function checkLength(fact: ParamFact, text: string): string | undefined {
  const { maxLength, minLength, pattern } = fact;
  if (pattern !== undefined && !compilePattern(pattern).test(text)) {
    return 'value does not match the regex pattern';
  }
  const length = Array.from(text).length;
  if (maxLength !== undefined && length > maxLength) {
    return `value may only be ${maxLength} characters long`;
  }
  if (minLength !== undefined && length < minLength) {
    return `value must be at least ${minLength} characters long`;
  }
  return undefined;
}

function checkRange(fact: ParamFact, text: string): string | undefined {
  const { maximum, minimum } = fact;
  if (NUMBER.test(text)) {
    const number = Number(text);
    if (maximum !== undefined && number > maximum) {
      return `value must have a maximum value of ${maximum}`;
    }
    if (minimum !== undefined && number < minimum) {
      return `value must have a minimum value of ${minimum}`;
    }
  }
  const options = fact.enum;
  if (options !== undefined && options !== null && !options.includes(text)) {
    return `value '${text}' does not have a value in the enumeration '${options.join(', ')}'`;
  }
  return undefined;
}

function checkScalar(fact: ParamFact, text: string, at: At): string | undefined {
  return checkFormat(fact, text, at) ?? checkLength(fact, text) ?? checkRange(fact, text);
}

function checkValue(
  fact: ParamFact,
  value: ParamValue,
  at: At & { readonly errors: Errors },
): void {
  const { path, errors } = at;
  const wrongType = fact.type === undefined ? undefined : checkType(fact.type, value);
  if (wrongType !== undefined) return addError(errors, path, wrongType);
  if (Array.isArray(value)) {
    const { items } = fact;
    for (const [index, item] of (value as readonly ParamValue[]).entries()) {
      if (items !== undefined) checkValue(items, item, { ...at, path: `${path}[${index}]` });
    }
    return;
  }
  if (typeof value === 'object') return;
  const text = formatScalar(value);
  const problem = checkScalar(fact, text, at);
  if (problem !== undefined) addError(errors, path, problem);
}

function isRequired(fact: ParamFact): boolean {
  return (
    fact.optional !== 1 &&
    fact.alias === undefined &&
    fact.type !== 'null' &&
    fact['type-property'] === undefined
  );
}

/** `path`: prefix of the names. */
function checkObject(fields: Fields, values: Params, { path: prefix, version }: At): Errors {
  const errors: Errors = {};
  for (const [name, fact] of Object.entries(fields)) {
    if (name.endsWith('[n]') || values[name] !== undefined) continue;
    if (isRequired(fact)) {
      addError(errors, prefix + name, 'property is missing and it is not optional');
    }
  }
  for (const [name, value] of Object.entries(values)) {
    const fact = findParamFact(fields, name);
    const path = prefix + name;
    if (fact === undefined) {
      addError(errors, path, NOT_DEFINED);
      continue;
    }
    checkValue(fact, value, { path, errors, version });
    const { requires } = fact;
    if (requires !== undefined && values[requires] === undefined) {
      addError(errors, prefix + requires, `missing property required by '${path}'`);
    }
  }
  return errors;
}

function verifyProperties(name: string, text: string, { path, version }: At): void {
  const fields = propertyFields(name);
  const values = parseProperties(fields, text, version);
  const errors = checkObject(fields, values, { path: `${path}.`, version });
  const lines = Object.entries(errors).map(([key, problem]) => `${key}: ${problem}\n`);
  if (lines.length > 0) throw new Error(`format error\n${lines.join('')}`);
  if (name.startsWith('pve-vm-cpu-conf')) verifyCpu(values, fields);
}

/** Converts what a form cannot express: one value to an array, a repeated key to a list. */
export function normaliseParams(endpoint: EndpointFact, params: Params): Params {
  const result: Record<string, ParamValue> = { ...params };
  for (const [name, value] of Object.entries(params)) {
    const fact = findParamFact(endpoint.params, name);
    if (fact === undefined) continue;
    if (Array.isArray(value) && fact.type === 'string' && fact.format?.endsWith('-list') === true) {
      result[name] = value.join(',');
    } else if (
      typeof value !== 'object' &&
      fact.type === 'array' &&
      value !== '' &&
      value !== '0'
    ) {
      result[name] = [value];
    }
  }
  return result;
}

/** All errors of a call, by parameter; empty when it is valid. */
export function verifyParams(
  endpoint: EndpointFact,
  params: Params,
  version: ApiVersion = '9.2',
): Readonly<Record<string, string>> {
  const errors = checkObject(endpoint.params, params, { path: '', version });
  if (version !== '8.4') return errors;
  return Object.fromEntries(
    Object.entries(errors).map(([name, text]) => [name, formatFor84(text)]),
  );
}

/** The texts about a dependent property and a short id changed in 9.x. */
function formatFor84(text: string): string {
  return text
    .replaceAll(
      /missing property required by '([^']*)'/g,
      "missing property - '$1' requires this property",
    )
    .replaceAll(
      /(storage ID '.?') cannot be shorter than 2 characters/g,
      '$1 contains illegal characters',
    );
}
