// SPDX-License-Identifier: Apache-2.0
import { NotFound, PvescalerError, Unreachable } from '../../ports/errors.ts';
import type { Random } from '../../ports/random.ts';
import type { RemoteCommand, RemoteShell } from '../../ports/remote-shell.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../ports/transport.ts';
import {
  guestExecScript,
  NODE_NAME_SCRIPT,
  type PveshCall,
  RUN_SCRIPT,
  readScript,
  startScript,
} from './command.ts';
import { refuseRootOnly } from './refuse-root-only.ts';
import { respond, toResponse } from './response.ts';

export interface SshHost {
  /** As configured: a name or an address. */
  readonly hostname: string;
  readonly port: number;
  readonly shell: RemoteShell;
}

type Limits = Pick<RemoteCommand, 'timeoutMs' | 'signal' | 'maySend'>;

const BASE_PATH = '/api2/json';
/** A log has no total number of lines here: it is read whole. */
const ALL_LINES = '1000000';
const NODE_NAME_TIMEOUT_MS = 15_000;

/**
 * Answers requests of the REST API by `pvesh` and `qm` on the hosts. Requests for a host run on that host itself: pvesh
 * would pass them on by ssh and garble the output of tasks.
 */
export class PveshTransport implements Transport {
  readonly #hosts: readonly SshHost[];
  /** Names of the Proxmox nodes, as far as they are known. */
  readonly #names = new Map<SshHost, string>();

  constructor(hosts: readonly SshHost[]) {
    this.#hosts = hosts;
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    const call = parseCall(request);
    const refusal = refuseRootOnly(call);
    if (refusal !== undefined) return respond(500, refusal, { data: null, message: refusal });
    const { timeoutMs, signal, maySend } = request;
    const limits: Limits = { timeoutMs, signal, ...(maySend !== undefined && { maySend }) };
    const { node } = parsePath(call.path);
    const host =
      node === undefined ? this.#hostOf(request.url) : await this.#findNode(node, limits);
    if (host instanceof Error) {
      // As the REST API answers when it cannot connect to the host: the other hosts would answer the same.
      return respond(595, host.message, { data: null, message: host.message });
    }
    const result = await host.shell.run({
      command: RUN_SCRIPT,
      input: buildScript(call),
      ...limits,
    });
    const response = toResponse(call, host.shell.address, result);
    return isTaskLog(call) ? sliceLog(response, new URL(request.url).searchParams) : response;
  }

  async close(): Promise<void> {
    await Promise.all(this.#hosts.map(({ shell }) => shell.close()));
  }

  /** Where to write a file that Proxmox then moves to a storage of the host. */
  async stageFile(
    file: { readonly host: string; readonly bytes: Uint8Array },
    { random, ...limits }: Limits & { readonly random: Random },
  ): Promise<{ readonly path: string; remove(): Promise<void> }> {
    const host = await this.#findNode(file.host, limits);
    if (host instanceof Error) throw host;
    const path = `/var/tmp/pveupload-${random.uuid().replaceAll('-', '')}`;
    await host.shell.writeFile({ path, bytes: file.bytes, ...limits });
    return { path, remove: () => host.shell.removeFile({ path, ...limits }) };
  }

  /** The name of the Proxmox node at an endpoint. */
  async nodeName(origin: string, limits: Limits): Promise<string> {
    const host = this.#hostOf(origin);
    return this.#names.get(host) ?? this.#readName(host, limits);
  }

  #hostOf(url: string): SshHost {
    const host = this.#hosts.find(
      (each) => new URL(formatEndpoint(each)).host === new URL(url).host,
    );
    if (host === undefined) throw new NotFound('HOST_NOT_FOUND', `no SSH host for ${url}`);
    return host;
  }

  /** The host that is the node; the error if it cannot be found. Asks those first that are called like it. */
  async #findNode(node: string, limits: Limits): Promise<SshHost | Error> {
    const known = this.#hosts.find((host) => this.#names.get(host) === node);
    if (known !== undefined) return known;
    const unknown = this.#hosts.filter((host) => !this.#names.has(host));
    const named = unknown.filter(({ hostname }) => isCalled(hostname, node));
    const errors: Error[] = [];
    for (const hosts of [named, unknown.filter((host) => !named.includes(host))]) {
      await Promise.all(
        hosts.map((host) =>
          this.#readName(host, limits).catch((error: unknown) => {
            errors.push(asHostError(error));
          }),
        ),
      );
      const found = this.#hosts.find((host) => this.#names.get(host) === node);
      if (found !== undefined) return found;
    }
    const [first = hostNotConfigured(node)] = errors;
    return first;
  }

  async #readName(host: SshHost, limits: Limits): Promise<string> {
    const timeoutMs = Math.min(limits.timeoutMs, NODE_NAME_TIMEOUT_MS);
    const { signal } = limits;
    const call = { command: RUN_SCRIPT, input: NODE_NAME_SCRIPT, timeoutMs, signal };
    const { output, exitCode } = await host.shell.run(call);
    const name = (output.trim().split('.')[0] ?? '').toLowerCase();
    if (exitCode !== 0 || name === '') {
      throw new Unreachable(
        'PVE_HOST_UNREACHABLE',
        `${host.shell.address} does not tell its name`,
        {
          facts: { requestSent: false },
        },
      );
    }
    this.#names.set(host, name);
    return name;
  }
}

function parseCall({ method, url, body }: TransportRequest): PveshCall {
  const { pathname, searchParams } = new URL(url);
  const form = typeof body === 'string' ? new URLSearchParams(body) : new URLSearchParams();
  const parameters = [...searchParams, ...form];
  const path = decodeURIComponent(pathname.slice(BASE_PATH.length));
  return { method: method === 'PATCH' ? 'PUT' : method, path, parameters };
}

function parsePath(path: string): { readonly node: string | undefined } {
  const [, first, node, ...rest] = path.split('/');
  return { node: first === 'nodes' && rest.length > 0 ? node : undefined };
}

function buildScript(call: PveshCall): string {
  const vmId = /^\/nodes\/[^/]+\/qemu\/(\d+)\/agent\/exec$/.exec(call.path)?.[1];
  if (call.method === 'POST' && vmId !== undefined) return buildGuestExec(vmId, call);
  if (call.method === 'GET') return readScript(isTaskLog(call) ? readWholeLog(call) : call);
  // The ping starts no task.
  return call.path.endsWith('/agent/ping') ? readScript(call) : startScript(call);
}

/** The REST API takes each byte of the input as one character. */
function buildGuestExec(vmId: string, { parameters }: PveshCall): string {
  const valuesOf = (name: string) => parameters.filter(([key]) => key === name).map(([, v]) => v);
  const [input] = valuesOf('input-data');
  return guestExecScript({
    vmId,
    command: valuesOf('command'),
    input: input === undefined ? undefined : Buffer.from(input, 'latin1').toString('utf8'),
  });
}

function isTaskLog({ method, path }: PveshCall): boolean {
  return method === 'GET' && /^\/nodes\/[^/]+\/tasks\/[^/]+\/log$/.test(path);
}

function readWholeLog(call: PveshCall): PveshCall {
  return { ...call, parameters: [['limit', ALL_LINES]] };
}

/** The page that the request asks for, with the total that the REST API adds. */
async function sliceLog(
  response: TransportResponse,
  query: URLSearchParams,
): Promise<TransportResponse> {
  if (response.status !== 200) return response;
  const parts: Uint8Array[] = [];
  for await (const part of response.body) parts.push(part);
  const body: unknown = JSON.parse(Buffer.concat(parts).toString('utf8'));
  const data = typeof body === 'object' && body !== null && 'data' in body ? body.data : [];
  const lines = Array.isArray(data) ? data : [];
  const start = Number(query.get('start') ?? 0);
  const page = lines.slice(start, start + Number(query.get('limit') ?? lines.length));
  return respond(200, 'OK', { data: page, total: lines.length });
}

function isCalled(hostname: string, node: string): boolean {
  return hostname === node || hostname.startsWith(`${node}.`);
}

/** `ssh://pve1:22`. */
export function formatEndpoint({ hostname, port }: Pick<SshHost, 'hostname' | 'port'>): string {
  return `ssh://${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`;
}

/** A refused key or login is reported as such; anything else is a host that cannot be reached. */
function asHostError(error: unknown): Error {
  if (
    error instanceof PvescalerError &&
    error.class !== 'Unreachable' &&
    error.class !== 'TimedOut'
  )
    throw error;
  return error instanceof Error ? error : new Error(String(error));
}

function hostNotConfigured(node: string): Unreachable {
  return new Unreachable(
    'PVE_HOST_UNREACHABLE',
    `none of the hosts in transport.ssh.hosts is ${node}`,
    { facts: { requestSent: false } },
  );
}
