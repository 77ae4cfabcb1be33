// SPDX-License-Identifier: Apache-2.0
// Applies the parameter rules of the API to a request and returns the error text for each refused parameter. Written from
// wire-facts only, independently of the simulator's verification, so that a test can compare both.
import {
  type ApiVersion,
  type EndpointFact,
  endpointsOf,
  INDEX_RANGES,
  type ParamFact,
} from '../wire-facts/index.ts';
import { checkScalar } from './value-rules.ts';

export type ParameterValues = Readonly<Record<string, string | readonly string[]>>;
export type ParameterErrors = Readonly<Record<string, string>>;

const UNKNOWN_PROPERTY =
  'property is not defined in schema and the schema does not allow additional properties';

export interface EndpointMatch {
  readonly endpoint: EndpointFact;
  /** Values of the path parameters. */
  readonly inPath: Readonly<Record<string, string>>;
}

interface PathPattern {
  readonly endpoint: EndpointFact;
  readonly path: RegExp;
  readonly names: readonly string[];
}

/** By version and method; patterns with fewer parameters come first, because literal segments take precedence. */
const patternCache = new Map<string, readonly PathPattern[]>();

function patternsOf(version: ApiVersion, method: string): readonly PathPattern[] {
  const key = `${version} ${method}`;
  const cached = patternCache.get(key);
  if (cached !== undefined) return cached;
  const patterns = endpointsOf(version)
    .filter((endpoint) => endpoint.method === method)
    .map(compilePattern)
    .sort((one, other) => one.names.length - other.names.length);
  patternCache.set(key, patterns);
  return patterns;
}

function compilePattern(endpoint: EndpointFact): PathPattern {
  const names: string[] = [];
  const source = endpoint.path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => {
    names.push(name);
    return name === 'volume' ? '(.+)' : '([^/]+)';
  });
  return { endpoint, path: new RegExp(`^${source}$`), names };
}

/** Finds the endpoint for a path relative to /api2/json. */
export function findEndpoint(
  version: ApiVersion,
  method: string,
  path: string,
): EndpointMatch | undefined {
  for (const { endpoint, path: shape, names } of patternsOf(version, method)) {
    const match = shape.exec(path);
    if (match === null) continue;
    const inPath = Object.fromEntries(names.map((name, at) => [name, decode(match[at + 1])]));
    return { endpoint, inPath };
  }
  return undefined;
}

function decode(text: string | undefined): string {
  return decodeURIComponent(text ?? '');
}

/** Maps `net3` to `net[n]` if the index is in range; returns any other known name unchanged. */
export function findSchemaName(
  fields: Readonly<Record<string, ParamFact>>,
  name: string,
): string | undefined {
  if (Object.hasOwn(fields, name)) return name;
  const match = /^([a-z]+)(\d+)$/.exec(name);
  const [, stem = '', digits = ''] = match ?? [];
  const isInRange =
    String(Number(digits)) === digits && Number(digits) <= (INDEX_RANGES[stem] ?? -1);
  return isInRange && Object.hasOwn(fields, `${stem}[n]`) ? `${stem}[n]` : undefined;
}

/** Returns every refused parameter with its error text. */
export function findParameterErrors(
  endpoint: EndpointFact,
  given: ParameterValues,
): ParameterErrors {
  const problems = new Map<string, string[]>();
  const add = (name: string, text: string) =>
    problems.set(name, [...(problems.get(name) ?? []), text]);
  for (const [name, fact] of Object.entries(endpoint.params)) {
    const isNamed = !name.endsWith('[n]') && given[name] === undefined;
    if (isNamed && fact.optional !== 1) add(name, 'property is missing and it is not optional');
  }
  for (const [name, value] of Object.entries(given)) {
    const fact = endpoint.params[findSchemaName(endpoint.params, name) ?? ''];
    if (fact === undefined) {
      add(name, UNKNOWN_PROPERTY);
      continue;
    }
    for (const text of findValueErrors(fact, value, name)) add(text[0], text[1]);
    if (fact.requires !== undefined && given[fact.requires] === undefined) {
      add(fact.requires, `missing property required by '${name}'`);
    }
  }
  return Object.fromEntries([...problems].map(([name, texts]) => [name, texts.join('\\n')]));
}

function findValueErrors(
  fact: ParamFact,
  value: string | readonly string[],
  name: string,
): readonly (readonly [string, string])[] {
  if (fact.type === 'array') {
    // A form sends a list of one as a single value; an empty value is not a list.
    if (value === '' || value === '0') return [[name, "type check ('array') failed"]];
    const items = typeof value === 'string' ? [value] : value;
    return items.flatMap((item, at) => {
      const text = checkScalar(fact.items ?? {}, item, `${name}[${at}]`);
      return text === undefined ? [] : [[`${name}[${at}]`, text] as const];
    });
  }
  const isList = fact.type === 'string' && fact.format?.endsWith('-list') === true;
  if (typeof value !== 'string' && !isList) {
    return [[name, `type check ('${fact.type}') failed - got ARRAY`]];
  }
  const text = checkScalar(fact, typeof value === 'string' ? value : value.join(','), name);
  return text === undefined ? [] : [[name, text]];
}
