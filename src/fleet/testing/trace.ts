// SPDX-License-Identifier: Apache-2.0
// What a fleet on fakes does, as text: calls that change something, records, journal and Events in their order, and how
// many reads were needed. Times are relative, and ids are numbered in the order of their appearance. Other tests say what
// must hold; traces detect every change of behaviour, so that it is reviewed. After an intended change: run the tests with
// `-u` and read the difference.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ClusterNode } from '../../ports/cluster.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { Versioned } from '../../ports/store.ts';
import { MUTATING_CLUSTER_CALLS, MUTATING_HYPERVISOR_CALLS } from './crashing-process.ts';
import { onePass, type TestFleet } from './test-fleet.ts';

const COLLECTIONS = ['intents', 'machines', 'drains', 'pools'] as const;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const DIGEST = /\b[0-9a-f]{40}\b/g;
const MAC = /\b[0-9A-F]{2}(?::[0-9A-F]{2}){5}\b/g;
const SECRET = /\b[0-9a-z]{6}\.[0-9a-z]{16}\b/g;

const NOT_TRACED =
  /^(constructor|volumeId|guestCommand|failNext|failNextTask|dropResponse|move|setOnline|(dis|re)connect)$/;

export interface TracedFleet extends TestFleet {
  readonly guests?: { settle(): void };
}

export class Trace {
  readonly #testFleet: TracedFleet;
  readonly #startedAt: number;
  readonly #lines: string[] = [];
  readonly #reads = new Map<string, number>();
  readonly #records = new Map<string, Readonly<Record<string, unknown>>>();
  #report = '';
  #nextPassAt = 0;

  /** Records from now on. */
  constructor(testFleet: TracedFleet) {
    this.#testFleet = testFleet;
    this.#startedAt = testFleet.clock.now();
    const { hypervisor, cluster, store } = testFleet;
    this.#observe(hypervisor, 'proxmox', [...MUTATING_HYPERVISOR_CALLS, 'guestExec']);
    if (cluster !== undefined) {
      const changes = [...MUTATING_CLUSTER_CALLS, 'deleteBootstrapTokens', 'emit'];
      this.#observe(cluster, 'kubernetes', changes);
    }
    this.#observe(store.journal, 'journal', ['append']);
    for (const name of COLLECTIONS) this.#observeRecords(name);
  }

  /** Begins a part of the trace. */
  note(text: string): void {
    this.#endPart();
    this.#lines.push('', `# ${text}`);
  }

  /** Runs passes one second apart, and records what their reports change. */
  async passes(count: number): Promise<void> {
    for (let pass = 0; pass < count; pass += 1) {
      const now = this.#testFleet.clock.now();
      const report = await onePass(this.#testFleet.fleet, this.#testFleet);
      const { nextPassAt, seenAt: _, orphans: __, ...others } = report;
      const text = this.#format({ ...others, nextInMs: nextPassAt - now });
      // A pass that is due at a certain time comes nearer with every other one.
      if (text !== this.#report && nextPassAt !== this.#nextPassAt) this.add(`report ${text}`);
      this.#report = text;
      this.#nextPassAt = nextPassAt;
    }
  }

  /** Something that was read or thrown. */
  async result(name: string, work: Promise<unknown>): Promise<void> {
    this.add(`${name}: ${this.#format(await work.catch((error: unknown) => error))}`);
  }

  toString(): string {
    this.#endPart();
    let text = this.#lines.join('\n').replaceAll(SECRET, '(token)');
    for (const [name, pattern] of Object.entries({ id: UUID, digest: DIGEST, mac: MAC }))
      text = named(text, pattern, name);
    return `${text.trim()}\n`;
  }

  #endPart(): void {
    const reads = Array.from(this.#reads, ([name, count]) => `${name} ${count}`).sort();
    if (reads.length > 0) this.#lines.push(`reads: ${reads.join(', ')}`);
    this.#reads.clear();
  }

  /** Counts what is not worth a line. */
  count(what: string): void {
    this.#reads.set(what, (this.#reads.get(what) ?? 0) + 1);
  }

  /** Adds a line with the time. */
  add(text: string): void {
    const seconds = (this.#testFleet.clock.now() - this.#startedAt) / 1_000;
    this.#lines.push(`${seconds.toFixed(1)} ${text}`);
  }

  /** Replaces the port's methods by ones that are recorded: `changes` with their arguments, others as reads. */
  #observe(port: object, portName: string, changes: readonly string[]): void {
    for (const name of methodsOf(port)) {
      const method: unknown = Reflect.get(port, name);
      if (typeof method !== 'function') continue;
      const observed = (...given: unknown[]): unknown => {
        const what = `${portName} ${name}`;
        const change = `${what} ${given.map((one) => this.#format(one)).join(' ')}`;
        if (changes.includes(name)) this.add(change);
        else this.count(given.some(hasSignal) ? `${what} with a signal` : what);
        return method.apply(port, given);
      };
      Reflect.set(port, name, observed);
    }
  }

  #observeRecords(name: (typeof COLLECTIONS)[number]): void {
    const records: object = this.#testFleet.store[name];
    for (const change of ['create', 'replace', 'remove']) {
      const method: unknown = Reflect.get(records, change);
      if (typeof method !== 'function') continue;
      Reflect.set(records, change, async (...given: unknown[]) => {
        const result: unknown = await method.apply(records, given);
        if (isRecord(result)) this.#addRecord(`${name} ${result.key}`, { ...result.value });
        else this.add(`removed ${name} ${this.#format(given[0])}`);
        return result;
      });
    }
  }

  /** Only the fields that have changed. */
  #addRecord(name: string, value: Readonly<Record<string, unknown>>): void {
    const before = this.#records.get(name) ?? {};
    const keys = new Set([...Object.keys(before), ...Object.keys(value)]);
    const changed = [...keys].filter(
      (key) => this.#format(before[key]) !== this.#format(value[key]),
    );
    this.#records.set(name, value);
    const fields = changed.map(
      (key) => `${key}=${this.#format(this.#changesOf(before[key], value[key]))}`,
    );
    this.add(`record ${name} ${fields.join(' ')}`);
  }

  /** Of an object, only what has changed. */
  #changesOf(before: unknown, value: unknown): unknown {
    if (!isObject(before) || !isObject(value) || Array.isArray(value)) return value;
    const isChanged = (key: string) => this.#format(before[key]) !== this.#format(value[key]);
    const keys = Object.keys({ ...before, ...value }).filter(isChanged);
    return Object.fromEntries(keys.map((key) => [key, value[key] ?? null]));
  }

  #format(value: unknown): string {
    if (value instanceof PvescalerError) return `${value.code}: ${value.message} (${value.hint})`;
    if (value instanceof Error) return `${value.constructor.name}: ${value.message}`;
    const text = JSON.stringify(value, (_key, one: unknown) => this.#plain(one)) ?? 'absent';
    return text.replaceAll(/"([\w-]+)":/g, '$1: ').replaceAll('"', "'");
  }

  #plain(value: unknown): unknown {
    if (typeof value === 'function') return '(function)';
    if (value instanceof AbortSignal) return '(signal)';
    if (value instanceof Error) return this.#format(value);
    // An ISO file is padded with zeros: the size alone would not show a change.
    if (value instanceof Uint8Array) return `(${value.filter((byte) => byte !== 0).length} bytes)`;
    if (value instanceof Map) return Object.fromEntries(value) as unknown;
    if (value instanceof Set) return [...value];
    if (isNode(value)) return `Node ${value.name}`;
    if (typeof value !== 'number') return value;
    const sinceStartMs = value - this.#startedAt;
    return Math.abs(sinceStartMs) < 1e10 ? `t${sinceStartMs / 1_000}` : value;
  }
}

/** Names what matches the pattern in the order of its appearance. */
function named(text: string, pattern: RegExp, name: string): string {
  const all = [...new Set(text.match(pattern))];
  const replaced = all.reduce(
    (result, one, at) => result.replaceAll(one, `${name}${at + 1}`),
    text,
  );
  // Names of VMs have the beginning of the machine's id.
  const isAmbiguous = (one: string) =>
    all.filter((id) => id.startsWith(one.slice(0, 8))).length > 1;
  return all.reduce(
    (result, one, at) =>
      isAmbiguous(one) ? result : result.replaceAll(one.slice(0, 8), `${name}${at + 1}`),
    replaced,
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function hasSignal(options: unknown): boolean {
  return isObject(options) && options['signal'] instanceof AbortSignal;
}

function isRecord(value: unknown): value is Versioned<object> {
  return isObject(value) && 'value' in value;
}

function isNode(value: unknown): value is ClusterNode {
  return isObject(value) && 'systemUuid' in value;
}

function methodsOf(port: object): readonly string[] {
  const prototype: unknown = Object.getPrototypeOf(port);
  const inherited = prototype === Object.prototype ? [] : Object.getOwnPropertyNames(prototype);
  return [...Object.keys(port), ...inherited].filter((name) => !NOT_TRACED.test(name));
}

/** A test that compares the trace of the work with the stored one. */
export function itTraces<Fleet extends TracedFleet>(
  name: string,
  create: () => Fleet | Promise<Fleet>,
  work: (trace: Trace, testFleet: Fleet) => Promise<void>,
): void {
  it(`the trace of ${name} is as stored`, async () => {
    const testFleet = await create();
    const trace = new Trace(testFleet);
    await work(trace, testFleet);
    const file = `${name.replaceAll(/\W+/g, '-')}.txt`;
    const path = join(import.meta.dirname, '../scenarios/traces', file);
    await expect(String(trace)).toMatchFileSnapshot(path);
  });
}
