// SPDX-License-Identifier: Apache-2.0
// Controls the Go program from a test: commands that it runs concurrently.
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

export interface GoCallOptions {
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

/** Outcome of the first failed call, else of the last call. */
export interface Outcome {
  readonly code: string;
  readonly message: string;
  /** Number of calls per code. */
  readonly codes: Readonly<Record<string, number>>;
  readonly header: Readonly<Record<string, readonly string[]>> | null;
  readonly trailer: Readonly<Record<string, readonly string[]>> | null;
  readonly bytes: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- the shape is the proto file's
  readonly response: any;
}

export interface StreamMessage {
  readonly code: string;
  readonly message: string;
  readonly status: string;
}

/** Connection events; GOAWAYs and ping acknowledgements are counted without TLS only. */
export interface ConnectionStats {
  readonly state: string;
  readonly connections: number;
  readonly open: number;
  readonly pings: number;
  readonly goAways: readonly number[];
}

/** A running command, which another command can cancel or continue. */
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
  #commands = 0;
  #clients = 0;

  private constructor(program: string) {
    const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    child.on('error', (error) => this.#rejectAll(error.message));
    child.on('close', (code) => {
      this.#rejectAll(`the Go client exited with code ${code}`);
      resolve();
    });
    createInterface({ input: child.stdout }).on('line', (line) => this.#receive(line));
  }

  static async start(version: Version): Promise<GoProcess> {
    const process = new GoProcess(programPath(version));
    const descriptors = await readFile(DESCRIPTORS, 'base64');
    await process.send('schema', { descriptors }).outcome;
    return process;
  }

  async version(): Promise<string> {
    return (await this.send<{ version: string }>('version', {}).outcome).version;
  }

  async dial(dial: Dial): Promise<GoClient> {
    this.#clients += 1;
    const name = `client-${this.#clients}`;
    await this.send('dial', { client: name, ...dial }).outcome;
    return new GoClient(this, name);
  }

  send<T>(what: string, details: object): Pending<T> & { readonly id: number } {
    this.#commands += 1;
    const id = this.#commands;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#waiting.set(id, { resolve, reject });
    this.#child.stdin.write(`${JSON.stringify({ id, do: what, ...details })}\n`);
    const cancel = async () => void (await this.send('cancel', { of: id }).outcome);
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
    else waiting?.reject(new Error(`the Go client failed: ${fault}`));
  }

  #rejectAll(reason: string): void {
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

  call(rpc: string, options: GoCallOptions = {}): Promise<Outcome> {
    return this.begin(rpc, options).outcome;
  }

  /** An RPC of the CloudProvider by name, any other by path. */
  begin(rpc: string, { metadata = [], ...options }: GoCallOptions = {}): Pending<Outcome> {
    const path = rpc.startsWith('/') ? rpc : `/${PROVIDER}/${rpc}`;
    const pairs = metadata.map(({ name, value }) => ({ name, value: btoa(value) }));
    return this.#send('call', { rpc: path, metadata: pairs, ...options });
  }

  check(service = ''): Promise<StreamMessage> {
    return this.#send<StreamMessage>('check', { service }).outcome;
  }

  /** Resolves with the first message. */
  watch(service = '', options: Pick<GoCallOptions, 'timeoutNs'> = {}) {
    return this.#stream('watch', { service, ...options });
  }

  /** Sends one reflection request and keeps the stream open. Resolves with the response. */
  openReflection(service: string, options: Pick<GoCallOptions, 'timeoutNs'> = {}) {
    return this.#stream('openReflection', { service, ...options });
  }

  reflect(service: string): Promise<{ readonly services: readonly string[]; files: number }> {
    return this.#send<{ services: readonly string[]; files: number }>('reflect', { service })
      .outcome;
  }

  stats(): Promise<ConnectionStats> {
    return this.#send<ConnectionStats>('stats', {}).outcome;
  }

  waitFor(what: { readonly state: string } | { readonly pings: number }): Promise<void> {
    return this.#send<void>('await', what).outcome;
  }

  async close(): Promise<void> {
    await this.#send('close', {}).outcome;
  }

  #stream(what: string, details: object) {
    const { id, outcome, cancel } = this.#send<StreamMessage>(what, details);
    const next = () => this.#send<StreamMessage>('next', { of: id }).outcome;
    return { outcome, cancel, next };
  }

  #send<T>(what: string, details: object) {
    return this.#process.send<T>(what, { client: this.#name, ...details });
  }
}
