// SPDX-License-Identifier: Apache-2.0
// Parsing of property strings (`key=value,key=value`, as in net0 or scsi0), with aliases and the default key.
import {
  type ApiVersion,
  type ParamFact,
  PROPERTY_STRINGS,
} from '../../../proxmox/wire-facts/index.ts';

type Fields = Readonly<Record<string, ParamFact>>;
/**
 * Those of a request, which differ by version: 9.2 refuses a key together with its alias, and converts words such as
 * `yes` also without a key. Or those of a stored value.
 */
type Rules = ApiVersion | 'stored';
const TRUE = /^(?:1|on|yes|true)$/i;
const FALSE = /^(?:0|off|no|false)$/i;

function throwPropertyError(text: string): never {
  throw new Error(`${text}\n`);
}

function asBoolean(value: string): string {
  if (TRUE.test(value)) return '1';
  return FALSE.test(value) ? '0' : value;
}

function addNamed(
  result: Record<string, string>,
  { fields, rules }: { readonly fields: Fields; readonly rules: Rules },
  part: readonly [string, string],
): void {
  let [key] = part;
  const value = part[1];
  if (result[key] !== undefined)
    throwPropertyError(`duplicate key in comma-separated list property: ${key}`);
  const { alias, keyAlias } = fields[key] ?? {};
  if (alias !== undefined) {
    if (keyAlias !== undefined) {
      if (result[keyAlias] !== undefined)
        throwPropertyError(`key alias '${keyAlias}' is already defined`);
      result[keyAlias] = key;
    }
    key = alias;
    if (rules === '9.2' && result[key] !== undefined)
      throwPropertyError(`key '${key}' is already defined (via alias)`);
  }
  result[key] = fields[key]?.type === 'boolean' ? asBoolean(value) : value;
}

function addUnnamed(
  result: Record<string, string>,
  { fields, rules }: { readonly fields: Fields; readonly rules: Rules },
  value: string,
): string {
  const key = Object.keys(fields).find((name) => fields[name]?.default_key === 1);
  if (key === undefined)
    return throwPropertyError('value without key, but schema does not define a default key');
  if (result[key] !== undefined && result[key] !== '0') {
    throwPropertyError(`duplicate key in comma-separated list property: ${key}`);
  }
  const isWord = fields[key]?.type === 'boolean' && rules !== '8.4';
  result[key] = isWord ? asBoolean(value) : value;
  return key;
}

/** Parses without checking the values; throws on a malformed structure. */
export function parseProperties(
  fields: Fields,
  text: string,
  rules: Rules = 'stored',
): Record<string, string> {
  const result: Record<string, string> = {};
  let unnamed: string | undefined;
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const match = /^([^=]+)=([^\n]+)\n?$/.exec(part);
    if (match !== null) {
      addNamed(result, { fields, rules }, [match[1] ?? '', match[2] ?? '']);
    } else if (part.includes('=')) {
      throwPropertyError('missing key in comma-separated list property');
    } else {
      if (unnamed !== undefined)
        throwPropertyError(`duplicate key in comma-separated list property: ${unnamed}`);
      unnamed = addUnnamed(result, { fields, rules }, part);
    }
  }
  return result;
}

export function propertyFields(name: string): Fields {
  return PROPERTY_STRINGS[name] ?? {};
}
