// SPDX-License-Identifier: Apache-2.0
import type { Client, ClientChannel, SFTPWrapper } from 'ssh2';
import type { Clock } from '../ports/clock.ts';
import {
  Cancelled,
  InvalidRequest,
  PvescalerError,
  TaskFailed,
  TimedOut,
  Unreachable,
} from '../ports/errors.ts';
import type {
  RemoteCommand,
  RemoteFile,
  RemoteResult,
  RemoteShell,
} from '../ports/remote-shell.ts';
import { WaitQueue } from '../ports/wait-queue.ts';
import { connect, formatAddress, type SshTarget, unreachable } from './connect.ts';
import type { HostKeyTrust, UnknownHostKey } from './host-key.ts';

export interface SshShellOptions extends SshTarget {
  readonly clock: Clock;
}

/** sshd allows ten sessions per connection by default (MaxSessions). */
const MAX_CHANNELS = 8;
const CONNECT_TIMEOUT_MS = 20_000;
const FILE_MODE = 0o600;
const NO_SUCH_FILE = 2;

type LimitedCall = Pick<RemoteCommand, 'timeoutMs' | 'signal' | 'maySend'>;

/** A call on its way: how far it is decides what its failure means. */
interface Progress {
  isSent: boolean;
  readonly signal: AbortSignal;
}

export class SshShell implements RemoteShell {
  readonly address: string;
  readonly #options: SshShellOptions;
  readonly #closed = new AbortController();
  readonly #waiting = new WaitQueue();
  #openChannels = 0;
  /** Shared by all calls; replaced when it fails or closes. */
  #connection: Promise<Client> | undefined;
  /** A person is asked whether to trust the host; no time limit passes meanwhile. */
  #question: Promise<unknown> | undefined;

  constructor(options: SshShellOptions) {
    this.#options = { ...options, trust: this.#observeQuestions(options.trust) };
    this.address = formatAddress(options);
  }

  async run({ command, input, ...call }: RemoteCommand): Promise<RemoteResult> {
    if (command.includes('\0')) {
      throw new InvalidRequest('REQUEST_INVALID', 'a command contains a NUL character', {
        facts: { requestSent: false },
      });
    }
    return this.#limited('a command', call, (client, progress) =>
      this.#execute(client, { command, input, call, progress }),
    );
  }

  async writeFile({ path, bytes, ...call }: RemoteFile & { bytes: Uint8Array }): Promise<void> {
    await this.#limited(`writing ${path}`, call, (client, progress) =>
      this.#withSftp(client, { call, progress }, (sftp, done) =>
        sftp.writeFile(path, Buffer.from(bytes), { mode: FILE_MODE }, (error) => done(error)),
      ),
    );
  }

  async removeFile({ path, ...call }: RemoteFile): Promise<void> {
    await this.#limited(`removing ${path}`, call, (client, progress) =>
      this.#withSftp(client, { call, progress }, (sftp, done) =>
        sftp.unlink(path, (error) => done(isMissing(error) ? undefined : error)),
      ),
    );
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#waiting.close();
    const client = await this.#connection?.catch(() => undefined);
    client?.end();
  }

  /** Runs work with a connection and a free channel, within the time of the call. */
  async #limited<T>(
    what: string,
    call: LimitedCall,
    work: (client: Client, progress: Progress) => Promise<T>,
  ): Promise<T> {
    const done = new AbortController();
    const over = new AbortController();
    const stop = AbortSignal.any([this.#closed.signal, ...(call.signal ? [call.signal] : [])]);
    const ended = AbortSignal.any([stop, over.signal]);
    this.#waitUntilOver(call.timeoutMs, AbortSignal.any([done.signal, stop])).then(
      () => over.abort(),
      () => undefined,
    );
    const progress: Progress = { isSent: false, signal: ended };
    try {
      return await rejectOnAbort(this.#onChannel(work, progress), ended);
    } catch (error) {
      const facts = { requestSent: progress.isSent };
      if (stop.aborted) {
        throw new Cancelled('CANCELLED', `${what} on ${this.address} was cancelled`, { facts });
      }
      if (!over.signal.aborted) throw this.#translate(error, what, facts);
      const seconds = call.timeoutMs / 1_000;
      const message = `${what} on ${this.address} did not end within ${seconds} s`;
      throw new TimedOut('REQUEST_TIMED_OUT', message, { cause: error, facts });
    } finally {
      done.abort();
    }
  }

  async #onChannel<T>(
    work: (client: Client, progress: Progress) => Promise<T>,
    progress: Progress,
  ): Promise<T> {
    await this.#waiting.waitUntil(() => this.#takeChannel(), progress.signal);
    try {
      const client = await this.#connected();
      progress.signal.throwIfAborted();
      return await work(client, progress);
    } finally {
      this.#openChannels -= 1;
      this.#waiting.wakeAll();
    }
  }

  /** Takes the channel in the check itself: all waiters are woken at once. */
  #takeChannel(): boolean {
    if (this.#openChannels >= MAX_CHANNELS) return false;
    this.#openChannels += 1;
    return true;
  }

  /** The attempt is shared: the end of one call does not end it for the others. */
  #connected(): Promise<Client> {
    const known = this.#connection;
    if (known !== undefined) return known;
    const done = new AbortController();
    const over = new AbortController();
    this.#waitUntilOver(CONNECT_TIMEOUT_MS, done.signal).then(
      () => over.abort(),
      () => undefined,
    );
    const connection = connect(
      this.#options,
      AbortSignal.any([this.#closed.signal, over.signal]),
    ).finally(() => done.abort());
    const forget = () => {
      if (this.#connection === connection) this.#connection = undefined;
    };
    connection.then((client) => client.once('close', forget), forget);
    this.#connection = connection;
    return connection;
  }

  async #waitUntilOver(ms: number, signal: AbortSignal): Promise<void> {
    do {
      await this.#question;
      await this.#options.clock.sleep(ms, { signal });
    } while (this.#question !== undefined);
  }

  #observeQuestions(trust: HostKeyTrust): HostKeyTrust {
    if (trust.kind === 'fingerprints' || trust.firstUse === undefined) return trust;
    const { firstUse } = trust;
    const confirm = (key: UnknownHostKey) => {
      const answer = firstUse.confirm(key);
      this.#question = answer
        .catch(() => undefined)
        .finally(() => {
          this.#question = undefined;
        });
      return answer;
    };
    return { ...trust, firstUse: { ...firstUse, confirm } };
  }

  #execute(
    client: Client,
    order: {
      readonly command: string;
      readonly input: RemoteCommand['input'] | undefined;
      readonly call: LimitedCall;
      readonly progress: Progress;
    },
  ): Promise<RemoteResult> {
    const { command, input = '', call, progress } = order;
    return this.#untilClosed(client, (resolve, reject) => {
      if (call.maySend?.() === false) return reject(withdrawn(this.address, false));
      progress.isSent = true;
      client.exec(command, (error, channel) => {
        // The channel or the request was refused.
        if (error !== undefined) progress.isSent = false;
        if (error !== undefined) return reject(error);
        collectOutput(channel, resolve, reject);
        // The caller of a call that has ended may have done the work another way since.
        if (progress.signal.aborted || call.maySend?.() === false) {
          channel.destroy();
          return reject(withdrawn(this.address, true));
        }
        progress.signal.addEventListener('abort', () => channel.destroy(), { once: true });
        channel.end(input);
      });
    });
  }

  #withSftp(
    client: Client,
    { call, progress }: { readonly call: LimitedCall; readonly progress: Progress },
    work: (sftp: SFTPWrapper, done: (error?: Error | null) => void) => void,
  ): Promise<void> {
    return this.#untilClosed(client, (resolve, reject) => {
      client.sftp((error, sftp) => {
        if (error !== undefined) return reject(error);
        if (progress.signal.aborted || call.maySend?.() === false) {
          sftp.end();
          return reject(withdrawn(this.address, false));
        }
        progress.isSent = true;
        work(sftp, (failure) => {
          sftp.end();
          if (failure === undefined || failure === null) resolve();
          else reject(hasStatus(failure) ? fileRefused(this.address, failure) : failure);
        });
      });
    });
  }

  /** Rejects also when the connection is lost meanwhile. */
  #untilClosed<T>(
    client: Client,
    work: (resolve: (value: T) => void, reject: (error: Error) => void) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const onClose = () => reject(new Error('the connection was lost'));
      const settle = () => client.removeListener('close', onClose);
      client.once('close', onClose);
      const fail = (error: Error) => {
        settle();
        reject(error);
      };
      try {
        work((value) => {
          settle();
          resolve(value);
        }, fail);
      } catch (error) {
        fail(toError(error));
      }
    });
  }

  #translate(error: unknown, what: string, facts: { readonly requestSent: boolean }): Error {
    if (error instanceof PvescalerError) return error;
    const reason = `${what}: ${toError(error).message}`;
    if (!facts.requestSent) return unreachable(this.#options, reason, error);
    return new Unreachable(
      this.#options.unreachable ?? 'SSH_UNREACHABLE',
      `${this.address}: ${reason}`,
      { cause: error, facts },
    );
  }
}

/** Resolves when the channel closes with an exit code; rejects when it closes without one. */
function collectOutput(
  channel: ClientChannel,
  resolve: (result: RemoteResult) => void,
  reject: (error: Error) => void,
): void {
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  let exit: { readonly code: number | undefined } | undefined;
  channel.on('data', (part: Buffer) => output.push(part));
  channel.stderr.on('data', (part: Buffer) => errors.push(part));
  channel.on('exit', (code: number | null) => {
    exit = { code: code ?? undefined };
  });
  channel.on('close', () => {
    if (exit === undefined) return reject(new Error('the connection was lost'));
    resolve({
      exitCode: exit.code,
      output: Buffer.concat(output).toString('utf8'),
      errorOutput: Buffer.concat(errors).toString('utf8'),
    });
  });
  channel.on('error', reject);
}

function withdrawn(address: string, requestSent: boolean): Cancelled {
  return new Cancelled('CANCELLED', `the caller withdrew a command for ${address}`, {
    facts: { requestSent },
  });
}

function rejectOnAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(new Cancelled('CANCELLED', 'the call ended'));
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** The host answered, with the status of SFTP. */
function hasStatus(error: Error): error is Error & { readonly code: number } {
  return 'code' in error && typeof error.code === 'number';
}

function fileRefused(address: string, cause: Error): TaskFailed {
  return new TaskFailed('TASK_FAILED', `${address} refuses to write a file: ${cause.message}`, {
    cause,
    hint: 'Check that the folder exists on the host, has free space, and that the user may write to it.',
  });
}

function isMissing(error: Error | null | undefined): boolean {
  return error !== null && error !== undefined && hasStatus(error) && error.code === NO_SUCH_FILE;
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
