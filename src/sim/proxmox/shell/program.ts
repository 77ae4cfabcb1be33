// SPDX-License-Identifier: Apache-2.0
// What qm and pvesh have in common: they call the API as root, wait for the task that a call starts, and print its log.

import type { EndpointFact } from '../../../proxmox/wire-facts/index.ts';
import { ApiError } from '../api-error.ts';
import type { Core } from '../core.ts';
import type { Streams } from '../guest/shell/redirects.ts';
import type { RootCall } from '../http/pipeline.ts';
import { formatScalar, type Params } from '../schema/verify.ts';
import { parseUpid, type TaskRecord } from '../tasks/engine.ts';

export interface ProgramCall {
  readonly core: Core;
  /** The host that the program runs on. */
  readonly host: string;
  readonly args: readonly string[];
  readonly streams: Streams;
  readonly runAsRoot: (call: RootCall) => Promise<unknown>;
  readonly findEndpoint: (method: string, path: string) => EndpointFact | undefined;
  /** A file of the host. */
  readonly readFile: (path: string) => Uint8Array | undefined;
  readonly removeFile: (path: string) => void;
  /** Registers a child process while `work` runs. */
  readonly withChild: <T>(title: string, work: () => Promise<T>) => Promise<T>;
}

/** The program writes to a pipe without a reader. */
export class BrokenPipe extends Error {}

const POLL_MS = 250;

/** Loading Perl and its modules, before anything is done. */
export async function loadPerl({ core }: ProgramCall, ms: number): Promise<void> {
  await core.state.clock.sleep(ms / core.state.speed);
}

export interface ApiOrder {
  readonly method: string;
  readonly path: string;
  readonly params: Params;
}

export async function callApi(program: ProgramCall, order: ApiOrder): Promise<unknown> {
  const { streams, host } = program;
  const vmId = /\/qemu\/(\d+)\/config$/.exec(order.path)?.[1];
  if (vmId !== undefined && order.method !== 'GET')
    streams.out(`update VM ${vmId}: ${describeChange(order.params)}\n`);
  const tmpName = order.path.endsWith('/upload') ? order.params['tmpfilename'] : undefined;
  if (tmpName === undefined) return program.runAsRoot({ ...order, host, upload: undefined });
  const path = formatScalar(tmpName);
  const bytes = program.readFile(path);
  if (bytes === undefined) throw new ApiError(500, `file '${path}' does not exist\n`);
  return program.runAsRoot({ ...order, host, upload: { bytes, tmpName: path } });
}

/** The task that a call started, when it has ended. Its log goes to standard output, its error to standard error. */
export async function followTask(program: ProgramCall, upid: string): Promise<TaskRecord> {
  const { core, streams } = program;
  const record = core.tasks.find(upid);
  if (record === undefined) throw new ApiError(500, `no such task '${upid}'\n`);
  let printed = 0;
  const printLog = (until: number) => {
    for (; printed < until; printed += 1) streams.out(`${record.log[printed] ?? ''}\n`);
  };
  await program.withChild(`task ${upid}`, async () => {
    try {
      while (!(await core.tasks.wait(upid, POLL_MS / core.state.speed)))
        printLog(record.log.length);
    } catch (error) {
      if (error instanceof BrokenPipe) core.tasks.breakPipe(upid);
      throw error;
    }
  });
  // The last line is the result, which is only in the log.
  printLog(record.log.length - 1);
  reportEnd(program, record);
  return record;
}

export function isUpid(result: unknown): result is string {
  return typeof result === 'string' && parseUpid(result) !== undefined;
}

export function isSuccess({ status = '' }: TaskRecord): boolean {
  return status === 'OK' || status.startsWith('WARNINGS: ');
}

function reportEnd({ streams }: ProgramCall, record: TaskRecord): void {
  const warnings = /^WARNINGS: (\d+)$/.exec(record.status ?? '')?.[1];
  if (warnings !== undefined) streams.err(`Task finished with ${warnings} warning(s)!\n`);
  else if (!isSuccess(record)) streams.err(`${record.status ?? ''}\n`);
}

function describeChange(params: Params): string {
  return Object.entries(params)
    .filter(([name]) => name !== 'digest')
    .map(([name, value]) => `-${name} ${name === 'cipassword' ? '<hidden>' : formatScalar(value)}`)
    .join(' ');
}

/** Perl's `die` leaves the last error number: the codes have no meaning, and only some are known. */
const EXIT_CODES: readonly (readonly [RegExp, number])[] = [
  [/^Configuration file '|^unable to find configuration file|is not running$/, 2],
  [/QEMU guest agent is not running|destroy failed/, 25],
  [/^Agent error/, 29],
  [/hostname lookup/, 11],
];

/** Errors are plain text on standard error, whatever the output format is. */
export function printError(streams: Streams, error: unknown, usage: string): number {
  if (!(error instanceof ApiError)) throw error;
  const message = error.message.trimEnd();
  const { errors = {} } = error;
  for (const [name, text] of Object.entries(errors)) if (name === '') streams.err(text);
  streams.err(`${error.status === 400 ? '400 ' : ''}${message}\n`);
  for (const [name, text] of Object.entries(errors))
    if (name !== '') streams.err(`${name}: ${text.trimEnd()}\n`);
  if (error.status === 400) streams.err(`${usage}\n`);
  return EXIT_CODES.find(([pattern]) => pattern.test(message))?.[1] ?? 255;
}
