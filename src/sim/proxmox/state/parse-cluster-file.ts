// SPDX-License-Identifier: Apache-2.0
// Parses the cluster file (YAML): returns a description, or every error with its position. Unknown keys are errors.
import {
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
} from 'yaml';
import { type ClusterDescription, STORAGE_TYPE_NAMES } from './cluster-description.ts';

export type ParsedCluster =
  | { readonly ok: true; readonly cluster: ClusterDescription }
  /** `file:line:col: message`. */
  | { readonly ok: false; readonly problems: readonly string[] };

type Schema =
  | { readonly kind: 'text' | 'number' | 'boolean' | 'size' }
  | { readonly kind: 'enum'; readonly values: readonly string[] }
  | { readonly kind: 'list'; readonly of: Schema }
  | { readonly kind: 'texts' }
  | {
      readonly kind: 'object';
      readonly fields: Readonly<Record<string, Schema>>;
      readonly required: readonly string[];
    };

const text: Schema = { kind: 'text' };
const number: Schema = { kind: 'number' };
const flag: Schema = { kind: 'boolean' };
const size: Schema = { kind: 'size' };
/** Any keys with string values, such as VM options. */
const texts: Schema = { kind: 'texts' };
const oneOf = (...values: readonly string[]): Schema => ({ kind: 'enum', values });
const list = (of: Schema): Schema => ({ kind: 'list', of });
const object = (
  fields: Readonly<Record<string, Schema>>,
  ...required: readonly string[]
): Schema => ({
  kind: 'object',
  fields,
  required,
});

const BEHAVIOUR = oneOf('normal', 'never-boots', 'hangs', 'no-agent', 'ignores-shutdown');

const FILE = object(
  { name: text, size, virtualSize: size, hosts: list(text), checksums: texts, backingFile: text },
  'name',
  'size',
);

const STORAGE = object(
  {
    name: text,
    type: oneOf(...STORAGE_TYPE_NAMES),
    content: list(text),
    shared: flag,
    hosts: list(text),
    path: text,
    size,
    used: size,
    reserved: size,
    enabled: flag,
    active: flag,
    files: list(FILE),
  },
  'name',
  'type',
  'content',
  'size',
);

const USER = object(
  {
    id: text,
    password: text,
    enabled: flag,
    expire: number,
    tokens: list(
      object(
        { id: text, secret: text, privsep: flag, expire: number, comment: text },
        'id',
        'secret',
      ),
    ),
  },
  'id',
);

const DATACENTER = object({
  nextId: object({ lower: number, upper: number }),
  tagStyle: object({ caseSensitive: flag, ordering: oneOf('config', 'alphabetical') }),
  userTagAccess: object({ allow: oneOf('none', 'list', 'existing', 'free'), list: list(text) }),
  registeredTags: list(text),
  macPrefix: text,
  options: texts,
});

const CLUSTER = object(
  {
    version: oneOf('8.4', '9.2'),
    name: text,
    datacenter: DATACENTER,
    ssh: flag,
    hosts: list(
      object(
        {
          name: text,
          cpus: number,
          memory: size,
          online: flag,
          whenOff: oneOf('no-route', 'refused', 'timed-out'),
          address: text,
          bridges: list(object({ name: text, dhcp: text, vlanAware: flag, vlans: text }, 'name')),
          clockSkew: number,
          release: text,
        },
        'name',
        'cpus',
        'memory',
      ),
    ),
    storages: list(STORAGE),
    users: list(USER),
    groups: list(object({ id: text, members: list(text) }, 'id')),
    roles: list(object({ id: text, privs: list(text) }, 'id', 'privs')),
    acl: list(
      object(
        { path: text, role: text, user: text, group: text, token: text, propagate: flag },
        'path',
        'role',
      ),
    ),
    pools: list(object({ id: text, comment: text, vms: list(number), storages: list(text) }, 'id')),
    vms: list(
      object(
        {
          id: number,
          host: text,
          config: texts,
          running: flag,
          template: flag,
          snapshots: list(object({ name: text, description: text }, 'name')),
          image: text,
          guest: BEHAVIOUR,
        },
        'id',
        'host',
      ),
    ),
    containers: list(
      object(
        { id: number, host: text, name: text, running: flag, memory: size, cpus: number },
        'id',
        'host',
      ),
    ),
    ha: list(
      object(
        {
          sid: text,
          state: oneOf('started', 'stopped', 'enabled', 'disabled', 'ignored'),
          group: text,
          comment: text,
        },
        'sid',
      ),
    ),
    urls: list(
      object(
        {
          url: text,
          status: number,
          size,
          virtualSize: size,
          type: text,
          checksums: texts,
          backingFile: text,
          untrusted: flag,
        },
        'url',
      ),
    ),
    guests: list(object({ match: text, behaviour: BEHAVIOUR }, 'match', 'behaviour')),
  },
  'hosts',
  'storages',
);

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
};

/** `64GiB`, `500M`, or plain bytes. */
function parseBytes(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  const match = /^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$/.exec(String(value));
  return match === null ? undefined : Math.floor(Number(match[1]) * (UNITS[match[2] ?? ''] ?? 1));
}

class ClusterFileReader {
  readonly problems: string[] = [];
  readonly #lines: LineCounter;
  readonly #file: string;

  constructor(file: string, lines: LineCounter) {
    this.#file = file;
    this.#lines = lines;
  }

  addProblem(offset: number, message: string): undefined {
    const { line, col } = this.#lines.linePos(offset);
    this.problems.push(`${this.#file}:${line}:${col}: ${message}`);
    return undefined;
  }

  read(schema: Schema, node: Node | null | undefined): unknown {
    const offset = node?.range?.[0] ?? 0;
    if (schema.kind === 'object') return this.#object(schema, node, offset);
    if (schema.kind === 'texts') return this.#texts(node, offset);
    if (schema.kind === 'list') {
      if (!isSeq(node)) return this.addProblem(offset, 'expected a list');
      return node.items.map((item) => this.read(schema.of, isNode(item) ? item : undefined));
    }
    return this.#scalar(schema, isScalar(node) ? node.value : undefined, offset);
  }

  #scalar(
    schema: Exclude<Schema, { kind: 'object' | 'list' | 'texts' }>,
    value: unknown,
    offset: number,
  ): unknown {
    if (schema.kind === 'enum') {
      const found = schema.values.find((known) => known === String(value));
      return found ?? this.addProblem(offset, `expected one of ${schema.values.join(', ')}`);
    }
    if (schema.kind === 'size')
      return parseBytes(value) ?? this.addProblem(offset, 'expected a size such as 64GiB');
    if (schema.kind === 'text') {
      const isText = typeof value === 'string' || typeof value === 'number';
      return isText ? String(value) : this.addProblem(offset, 'expected a string');
    }
    return typeof value === schema.kind
      ? value
      : this.addProblem(offset, `expected a ${schema.kind}`);
  }

  #pairs(node: Node | null | undefined, offset: number): readonly Pair<Node, Node>[] {
    if (isMap<Node, Node>(node)) return node.items;
    this.addProblem(offset, 'expected keys and values');
    return [];
  }

  #texts(node: Node | null | undefined, offset: number): Record<string, string> {
    const result: Record<string, string> = {};
    for (const pair of this.#pairs(node, offset)) {
      const value = isScalar(pair.value) ? pair.value.value : undefined;
      if (typeof value === 'boolean') result[String(pair.key)] = value ? '1' : '0';
      else if (typeof value === 'string' || typeof value === 'number') {
        result[String(pair.key)] = String(value);
      } else this.addProblem(pair.value?.range?.[0] ?? offset, 'expected a string');
    }
    return result;
  }

  #object(
    schema: Extract<Schema, { kind: 'object' }>,
    node: Node | null | undefined,
    offset: number,
  ): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    for (const pair of this.#pairs(node, offset)) {
      const key = String(pair.key);
      const field = schema.fields[key];
      if (field === undefined) {
        const known = Object.keys(schema.fields).join(', ');
        this.addProblem(pair.key.range?.[0] ?? offset, `unknown key '${key}' (known: ${known})`);
        continue;
      }
      result[key] = this.read(field, pair.value);
    }
    for (const key of schema.required) {
      if (result[key] === undefined) this.addProblem(offset, `'${key}' is missing`);
    }
    return result;
  }
}

/** Finds duplicate ids and VMs on undescribed hosts. */
function checkReferences(cluster: ClusterDescription, file: string): readonly string[] {
  const hosts = new Set(cluster.hosts.map(({ name }) => name));
  const guests = [...(cluster.vms ?? []), ...(cluster.containers ?? [])];
  const ids = new Map<number, number>();
  for (const { id } of guests) ids.set(id, (ids.get(id) ?? 0) + 1);
  const twice = [...ids]
    .filter(([, count]) => count > 1)
    .map(([id]) => `${file}:1:1: id ${id} is used twice`);
  const unresolved = guests
    .filter(({ host }) => !hosts.has(host))
    .map(({ id, host }) => `${file}:1:1: guest ${id} is on host '${host}', which is not described`);
  return [...twice, ...unresolved];
}

/** Reads a cluster file. */
export function parseClusterDescription(yamlText: string, file = 'cluster.yaml'): ParsedCluster {
  const lines = new LineCounter();
  const document = parseDocument(yamlText, { lineCounter: lines });
  const reader = new ClusterFileReader(file, lines);
  for (const error of document.errors)
    reader.addProblem(error.pos[0], error.message.split('\n')[0] ?? '');
  if (reader.problems.length > 0) return { ok: false, problems: reader.problems };
  const value = reader.read(CLUSTER, document.contents);
  if (reader.problems.length > 0) return { ok: false, problems: reader.problems };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- CLUSTER is its schema, checked just now
  const cluster = value as ClusterDescription;
  const unresolved = checkReferences(cluster, file);
  return unresolved.length > 0 ? { ok: false, problems: unresolved } : { ok: true, cluster };
}
