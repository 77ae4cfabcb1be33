// SPDX-License-Identifier: Apache-2.0
// The Go program as seen from a test: orders that it carries out side by side.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { DESCRIPTORS, programPath, type Version } from './build.ts';

export const PROVIDER = 'clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider';
export const HEALTH = 'grpc.health.v1.Health';

export interface Dial {
  readonly target: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly keepaliveMs?: number;
  readonly serviceConfig?: string;
  readonly userAgent?: string;
}

export interface CallOptions {
  readonly request?: object;
  readonly timeoutNs?: number;
  readonly metadata?: readonly { readonly name: string; readonly value: string }[];
  readonly gzip?: boolean;
  readonly waitForReady?: boolean;
  readonly subtype?: string;
  readonly count?: number;
  readonly parallel?: number;
  readonly quiet?: boolean;
}

/** Of the first call that failed, else of the last. */
export interface Outcome {
  readonly code: string;
  readonly message: string;
  /** How many calls ended in which code. */
  readonly codes: Readonly<Record<string, number>>;
  readonly header: Readonly<Record<string, readonly string[]>> | null;
  readonly trailer: Readonly<Record<string, readonly string[]>> | null;
  readonly bytes: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- the shape is the proto file's
  readonly answer: any;
}

export interface Told {
  readonly code: string;
  readonly message: string;
  readonly status: string;
}

/** What came over the wire beside calls; GOAWAYs and answers to pings only without TLS. */
export interface Seen {
  readonly state: string;
  readonly connections: number;
  readonly open: number;
  readonly pings: number;
  readonly goAways: readonly number[];
}

/** Begun by one order, ended or asked on by another. */
export interface Pending<T> {
  readonly outcome: Promise<T>;
  readonly cancel: () => Promise<void>;
}

interface Waiting {
  readonly resolve: (result: never) => void;
  readonly reject: (reason: Error) => void;
}

export class GoProcess implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended: Promise<void>;
  #orders = 0;
  #clients = 0;

  private constructor(program: string) {
    const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    child.on('error', (error) => this.#abandon(error.message));
    child.on('close', (code) => {
      this.#abandon(`the client ended with exit code ${code}`);
      resolve();
    });
    createInterface({ input: child.stdout }).on('line', (line) => this.#receive(line));
  }

  static async start(version: Version): Promise<GoProcess> {
    const process = new GoProcess(programPath(version));
    const descriptors = await readFile(DESCRIPTORS, 'base64');
    await process.order('schema', { descriptors }).outcome;
    return process;
  }

  async version(): Promise<string> {
    return (await this.order<{ version: string }>('version', {}).outcome).version;
  }

  async dial(dial: Dial): Promise<GoClient> {
    this.#clients += 1;
    const name = `client-${this.#clients}`;
    await this.order('dial', { client: name, ...dial }).outcome;
    return new GoClient(this, name);
  }

  order<T>(what: string, details: object): Pending<T> & { readonly id: number } {
    this.#orders += 1;
    const id = this.#orders;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#waiting.set(id, { resolve, reject });
    this.#child.stdin.write(`${JSON.stringify({ id, do: what, ...details })}\n`);
    const cancel = async () => void (await this.order('cancel', { of: id }).outcome);
    return { id, outcome: promise, cancel };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }

  #receive(line: string): void {
    const { id, fault, ...result } = JSON.parse(line);
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (fault === undefined) waiting?.resolve(result as never);
    else waiting?.reject(new Error(`the client could not: ${fault}`));
  }

  #abandon(reason: string): void {
    for (const { reject } of this.#waiting.values()) reject(new Error(reason));
    this.#waiting.clear();
  }
}

export class GoClient {
  readonly #process: GoProcess;
  readonly #name: string;

  constructor(process: GoProcess, name: string) {
    this.#process = process;
    this.#name = name;
  }

  call(rpc: string, options: CallOptions = {}): Promise<Outcome> {
    return this.begin(rpc, options).outcome;
  }

  /** One of the CloudProvider's by its name, any other by its path. */
  begin(rpc: string, { metadata = [], ...options }: CallOptions = {}): Pending<Outcome> {
    const path = rpc.startsWith('/') ? rpc : `/${PROVIDER}/${rpc}`;
    const pairs = metadata.map(({ name, value }) => ({ name, value: btoa(value) }));
    return this.#order('call', { rpc: path, metadata: pairs, ...options });
  }

  check(service = ''): Promise<Told> {
    return this.#order<Told>('check', { service }).outcome;
  }

  /** Resolves with the first that is told. */
  watch(service = '', options: Pick<CallOptions, 'timeoutNs'> = {}) {
    return this.#stream('watch', { service, ...options });
  }

  /** Asks one thing of a service for reflection, and might ask more. Resolves with the answer. */
  converse(service: string, options: Pick<CallOptions, 'timeoutNs'> = {}) {
    return this.#stream('converse', { service, ...options });
  }

  reflect(service: string): Promise<{ readonly services: readonly string[]; files: number }> {
    return this.#order<{ services: readonly string[]; files: number }>('reflect', { service })
      .outcome;
  }

  seen(): Promise<Seen> {
    return this.#order<Seen>('seen', {}).outcome;
  }

  until(what: { readonly state: string } | { readonly pings: number }): Promise<void> {
    return this.#order<void>('await', what).outcome;
  }

  async close(): Promise<void> {
    await this.#order('close', {}).outcome;
  }

  #stream(what: string, details: object) {
    const { id, outcome, cancel } = this.#order<Told>(what, details);
    const next = () => this.#order<Told>('next', { of: id }).outcome;
    return { outcome, cancel, next };
  }

  #order<T>(what: string, details: object) {
    return this.#process.order<T>(what, { client: this.#name, ...details });
  }
}
