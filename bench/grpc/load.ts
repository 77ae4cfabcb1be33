// SPDX-License-Identifier: Apache-2.0
// The Cluster Autoscaler's mix of calls, open loop, from a separate thread: a call starts when it is due, whether or not
// earlier calls have finished, and is measured from then. On bare HTTP/2: a client with more garbage collection than the
// server would measure itself.
import { type ClientHttp2Session, connect } from 'node:http2';
import { parentPort, workerData } from 'node:worker_threads';

export interface Load {
  readonly port: number;
  readonly seconds: number;
  readonly perSecond: number;
  /** The first seconds are not measured: a real autoscaler has been running for days. */
  readonly warmUpSeconds: number;
  readonly mutationsPerSecond: number;
  /** Encoded requests, used in rotation; `share` is the weight among the reads. */
  readonly reads: readonly {
    readonly rpc: string;
    readonly share: number;
    readonly requests: readonly Uint8Array[];
  }[];
  readonly mutations: readonly { readonly rpc: string; readonly request: Uint8Array }[];
}

export interface Measured {
  /** Duration of each call in milliseconds. */
  readonly calls: Readonly<Record<string, readonly number[]>>;
  readonly mutations: readonly number[];
  readonly failures: number;
  readonly firstFailure: string | undefined;
  readonly seconds: number;
}

const SERVICE = '/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider';

/** Resolves with the problem of a failed call, else undefined. */
function callOn(
  session: ClientHttp2Session,
  rpc: string,
  request: Uint8Array,
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const frame = Buffer.alloc(5 + request.length);
  frame.writeUInt32BE(request.length, 1);
  frame.set(request, 5);
  const stream = session.request({
    ':method': 'POST',
    ':path': `${SERVICE}/${rpc}`,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  let status: unknown;
  const note = (headers: Readonly<Record<string, unknown>>) => {
    status = headers['grpc-status'] ?? status;
  };
  stream.on('response', note);
  stream.on('trailers', note);
  stream.on('error', (error) => resolve(String(error)));
  stream.on('close', () => resolve(status === '0' ? undefined : `status ${String(status)}`));
  stream.resume();
  stream.end(frame);
  return promise;
}

async function run(load: Load): Promise<Measured> {
  const session = connect(`http://127.0.0.1:${load.port}`);
  const calls: Record<string, number[]> = {};
  const mutations: number[] = [];
  let failures = 0;
  let firstFailure: string | undefined;
  const running: Promise<void>[] = [];
  let measuredFrom = 0;
  const call = async (
    rpc: string,
    request: Uint8Array,
    { due, into }: { due: number; into: number[] },
  ) => {
    const problem = await callOn(session, rpc, request);
    if (due >= measuredFrom) into.push(performance.now() - due);
    if (problem === undefined) return;
    failures += 1;
    firstFailure ??= `${rpc}: ${problem}`;
  };
  const wheel = load.reads.flatMap((read) => Array.from({ length: read.share }, () => read));
  const started = performance.now();
  measuredFrom = started + load.warmUpSeconds * 1_000;
  let reads = 0;
  let writes = 0;
  for (;;) {
    const elapsed = (performance.now() - started) / 1_000;
    if (elapsed >= load.warmUpSeconds + load.seconds) break;
    while (reads < elapsed * load.perSecond) {
      // A stride coprime to the length mixes the RPCs.
      const read = wheel[(reads * 37) % wheel.length];
      const request = read?.requests[Math.floor(reads / 3) % read.requests.length];
      const due = started + (reads / load.perSecond) * 1_000;
      if (read !== undefined && request !== undefined) {
        calls[read.rpc] ??= [];
        running.push(call(read.rpc, request, { due, into: calls[read.rpc] ?? [] }));
      }
      reads += 1;
    }
    while (writes < elapsed * load.mutationsPerSecond) {
      const mutation = load.mutations[writes % load.mutations.length];
      const due = started + (writes / load.mutationsPerSecond) * 1_000;
      if (mutation !== undefined)
        running.push(call(mutation.rpc, mutation.request, { due, into: mutations }));
      writes += 1;
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(running);
  session.close();
  return {
    calls,
    mutations,
    failures,
    firstFailure,
    seconds: (performance.now() - measuredFrom) / 1_000,
  };
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
if (parentPort !== null) parentPort.postMessage(await run(workerData as Load));
