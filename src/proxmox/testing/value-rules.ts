// SPDX-License-Identifier: Apache-2.0
// Checks one value: type, format, length, range and enumeration; and property strings (`key=value,…`).
import { type ParamFact, PROPERTY_STRINGS } from '../wire-facts/index.ts';
import { findFormatRule } from './format-rules.ts';

const INTEGER = /^[+-]?\d+$/;
const DECIMAL = /^[+-]?(\d+\.\d+|\d+\.|\.\d+|\d+)([eE][+-]?\d+)?$/;

const TYPES: Readonly<Record<string, (text: string) => boolean>> = {
  boolean: (text) => text === '0' || text === '1',
  integer: (text) => INTEGER.test(text),
  number: (text) => DECIMAL.test(text),
};

/** Returns the first error, in the order in which Proxmox checks. */
export function checkScalar(fact: ParamFact, text: string, name: string): string | undefined {
  if (TYPES[fact.type ?? '']?.(text) === false) {
    return `type check ('${fact.type}') failed - got '${text}'`;
  }
  const format = checkFormat(fact, text, name);
  if (format !== undefined) return `invalid format - ${format}\n`;
  return checkLength(fact, text) ?? checkRange(fact, text) ?? checkEnum(fact, text);
}

function checkLength(fact: ParamFact, text: string): string | undefined {
  if (fact.pattern !== undefined && !compileWholeMatch(fact.pattern).test(text)) {
    return 'value does not match the regex pattern';
  }
  const length = Array.from(text).length;
  if (length > (fact.maxLength ?? length)) {
    return `value may only be ${fact.maxLength} characters long`;
  }
  return length < (fact.minLength ?? length)
    ? `value must be at least ${fact.minLength} characters long`
    : undefined;
}

function compileWholeMatch(pattern: string): RegExp {
  const source = pattern.replaceAll(/\(\?\^(\w*):/g, (_, flags: string) =>
    flags.includes('i') ? '(?i:' : '(?:',
  );
  return new RegExp(`^(?:${source.replaceAll('{,', '{0,')})$`);
}

function checkRange(fact: ParamFact, text: string): string | undefined {
  if (!DECIMAL.test(text)) return undefined;
  const number = Number(text);
  if (number > (fact.maximum ?? number)) {
    return `value must have a maximum value of ${fact.maximum}`;
  }
  return number < (fact.minimum ?? number)
    ? `value must have a minimum value of ${fact.minimum}`
    : undefined;
}

function checkEnum(fact: ParamFact, text: string): string | undefined {
  const known = fact.enum ?? undefined;
  if (known === undefined || known.includes(text)) return undefined;
  return `value '${text}' does not have a value in the enumeration '${known.join(', ')}'`;
}

/** Whether the rules check the format completely, so that a test can compare the result. */
export function isChecked({ format, propertyString }: ParamFact): boolean {
  if (propertyString !== undefined) {
    // CPU models and flags have further rules, which are not implemented.
    if (propertyString.startsWith('pve-vm-cpu-conf')) return false;
    return Object.values(PROPERTY_STRINGS[propertyString] ?? {}).every(isChecked);
  }
  return format === undefined || findFormatRule(format) !== undefined;
}

function checkFormat(fact: ParamFact, text: string, name: string): string | undefined {
  if (fact.propertyString !== undefined)
    return checkPropertyString(fact.propertyString, text, name);
  return fact.format === undefined ? undefined : findFormatRule(fact.format)?.(text);
}

class MalformedPropertyString extends Error {}

function checkPropertyString(
  propertyString: string,
  text: string,
  name: string,
): string | undefined {
  const fields = PROPERTY_STRINGS[propertyString] ?? {};
  let values: ReadonlyMap<string, string>;
  try {
    values = parsePropertyString(text, fields);
  } catch (error) {
    if (error instanceof MalformedPropertyString) return error.message;
    throw error;
  }
  const lines = [...findMissing(fields, values), ...findInvalid(fields, values, name)].map(
    ([key, problem]) => `${name}.${key}: ${problem}`,
  );
  return lines.length === 0 ? undefined : ['format error', ...lines].join('\n');
}

type Fields = Readonly<Record<string, ParamFact>>;

function findMissing(fields: Fields, values: ReadonlyMap<string, string>) {
  return Object.entries(fields)
    .filter(([key, fact]) => fact.optional !== 1 && fact.alias === undefined && !values.has(key))
    .map(([key]) => [key, 'property is missing and it is not optional'] as const);
}

function findInvalid(fields: Fields, values: ReadonlyMap<string, string>, name: string) {
  return [...values].flatMap(([key, value]) => {
    const fact = fields[key];
    if (fact === undefined) {
      return [
        [
          key,
          'property is not defined in schema and the schema does not allow additional properties',
        ] as const,
      ];
    }
    const problem = checkScalar(fact, value, `${name}.${key}`);
    const { requires } = fact;
    const lacks = requires !== undefined && !values.has(requires);
    return [
      ...(problem === undefined ? [] : [[key, problem] as const]),
      ...(lacks ? [[requires, `missing property required by '${name}.${key}'`] as const] : []),
    ];
  });
}

function parsePropertyString(text: string, fields: Fields): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  let unnamed: string | undefined;
  for (const part of text.split(',').filter((piece) => piece.trim() !== '')) {
    const at = part.indexOf('=');
    if (at === -1) {
      if (unnamed !== undefined) throw duplicateKey(unnamed);
      unnamed = Object.keys(fields).find((key) => fields[key]?.default_key === 1);
      if (unnamed === undefined) {
        throw new MalformedPropertyString(
          'value without key, but schema does not define a default key',
        );
      }
      if (!['', '0', undefined].includes(values.get(unnamed))) throw duplicateKey(unnamed);
      values.set(unnamed, part);
    } else if (at === 0 || at === part.length - 1) {
      throw new MalformedPropertyString('missing key in comma-separated list property');
    } else {
      setNamed(values, fields, [part.slice(0, at), part.slice(at + 1)]);
    }
  }
  return values;
}

/** An alias may repeat its key; the key itself may occur only once. */
function setNamed(
  values: Map<string, string>,
  fields: Fields,
  [key, value]: readonly [string, string],
): void {
  if (values.has(key)) throw duplicateKey(key);
  const { alias, keyAlias } = fields[key] ?? {};
  // `virtio=MAC` sets model and address.
  if (keyAlias !== undefined) {
    if (values.has(keyAlias))
      throw new MalformedPropertyString(`key alias '${keyAlias}' is already defined`);
    values.set(keyAlias, key);
  }
  const name = alias ?? key;
  values.set(name, fields[name]?.type === 'boolean' ? normalizeBoolean(value) : value);
}

function duplicateKey(key: string): MalformedPropertyString {
  return new MalformedPropertyString(`duplicate key in comma-separated list property: ${key}`);
}

function normalizeBoolean(text: string): string {
  if (/^(1|on|yes|true)$/i.test(text)) return '1';
  return /^(0|off|no|false)$/i.test(text) ? '0' : text;
}
