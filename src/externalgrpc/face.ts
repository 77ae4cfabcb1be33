// SPDX-License-Identifier: Apache-2.0
// Puts the services on their listeners and keeps the view they answer from up to date.
import type { DescService } from '@bufbuild/protobuf';
import type { Clock } from '../ports/clock.ts';
import { asPvescalerError, InvalidConfig } from '../ports/errors.ts';
import { expander } from './expander/expander.ts';
import { CloudProvider } from './gen/externalgrpc/cloud_provider_pb.js';
import { Expander } from './gen/grpcplugin/expander_pb.js';
import { Health } from './gen/health/health_pb.js';
import { cloudProvider, Provider, type ProviderParts } from './provider/cloud-provider.ts';
import { grpcError } from './provider/grpc-error.ts';
import type { Around } from './server/answer-calls.ts';
import type { CertificatePaths, ReadText } from './server/certificates.ts';
import { health } from './server/health.ts';
import { type Listener, listen, type Security } from './server/listener.ts';
import { addReflection, REFLECTION } from './server/reflection.ts';
import { Services } from './server/services.ts';
import { GrpcError } from './server/status.ts';
import { differences } from './template/differences.ts';

interface Address {
  readonly host: string;
  readonly port: number;
}

export interface ExternalGrpcOptions extends Pick<ProviderParts, 'fleet' | 'settings'> {
  readonly listen: Address;
  readonly tls: (Required<CertificatePaths> & { readonly allow: readonly string[] }) | undefined;
  /** Without TLS; whoever reaches the port can make and delete machines. */
  readonly insecure: boolean;
  readonly expander: { readonly listen: Address } | undefined;
  readonly clock: Clock;
  readonly read: ReadText;
  readonly warn: (message: string) => void;
  /** Aborted when the process shall end: what is asked from then on, nobody might carry out. */
  readonly signal?: AbortSignal;
  /** After each call: for metrics and logs. */
  readonly onCall?: (call: GrpcCall) => void;
  /** How soon what others wrote is in the view. */
  readonly followEveryMs?: number;
  /** How long nothing may move in a call while its client has something to send or to read. */
  readonly stillMaxMs?: number;
}

export interface GrpcCall {
  readonly rpc: string;
  readonly code: string;
  readonly ms: number;
}

export interface RunningExternalGrpc {
  readonly port: number;
  readonly expanderPort: number | undefined;
  /** Empty when the autoscaler can be answered; else what is missing, in words. */
  waitingFor(): readonly string[];
  close(): Promise<void>;
}

const FOLLOW_EVERY_MS = 1_000;
const CALLS_AT_ONCE = 1_024;
/** Anybody may call it; the autoscaler does so once at a time, and without an answer decides by itself. */
const EXPANDER_CALLS_AT_ONCE = 16;

export async function serveExternalGrpc(
  options: ExternalGrpcOptions,
): Promise<RunningExternalGrpc> {
  const provider = new Provider(options);
  const waitingFor = () => missing(options);
  const security = securityOf(options);
  const abort = new AbortController();
  const shared = {
    clock: options.clock,
    read: options.read,
    warn: options.warn,
    stillMaxMs: options.stillMaxMs,
  };
  const main = await listen({
    ...shared,
    listen: options.listen,
    security,
    callsAtOnce: CALLS_AT_ONCE,
    around: attended(options, () => notReady(options, waitingFor)),
    services: services(provider, options, waitingFor),
  });
  const second = await listenExpander(options, provider, security).catch(async (error: unknown) => {
    await main.close();
    throw error;
  });
  const following = follow(options, abort.signal);
  return {
    port: main.port,
    expanderPort: second?.port,
    waitingFor,
    async close() {
      abort.abort();
      await Promise.all([main.close(), second?.close(), following]);
    },
  };
}

function listenExpander(
  options: ExternalGrpcOptions,
  provider: Provider,
  security: Security,
): Promise<Listener | undefined> {
  if (options.expander === undefined) return Promise.resolve(undefined);
  if (security.kind === 'plaintext') {
    const message = 'grpc.expander needs grpc.tls: the autoscaler speaks to it by TLS only';
    return Promise.reject(new InvalidConfig('CONFIG_INVALID', message));
  }
  const { certPath, keyPath } = security.paths;
  return listen({
    ...options,
    listen: options.expander.listen,
    // The autoscaler shows no certificate there; nothing can be changed through it.
    security: { kind: 'tls', paths: { certPath, keyPath }, allow: undefined },
    callsAtOnce: EXPANDER_CALLS_AT_ONCE,
    around: attended(options, () => undefined),
    services: withReflection(new Services().add(Expander, expander(provider.groups)), [Expander]),
  });
}

function services(
  provider: Provider,
  { clock }: ExternalGrpcOptions,
  waitingFor: () => readonly string[],
): Services {
  const own = [CloudProvider, Health];
  const names = [...own, ...REFLECTION].map(({ typeName }) => typeName);
  const isReady = () => waitingFor().length === 0;
  const all = new Services()
    .add(CloudProvider, cloudProvider(provider))
    .add(Health, health({ services: names, isReady, clock }));
  return withReflection(all, own);
}

function withReflection(all: Services, own: readonly DescService[]): Services {
  addReflection(all, [...own, ...REFLECTION]);
  return all;
}

function securityOf({ tls, insecure, warn, listen: at }: ExternalGrpcOptions): Security {
  if (tls !== undefined) {
    if (tls.allow.length === 0) warn('grpc.tls.allow is empty: no client is let in');
    const { certPath, keyPath, clientCaPath, allow } = tls;
    return { kind: 'tls', paths: { certPath, keyPath, clientCaPath }, allow };
  }
  if (!insecure) {
    const hint = 'Set grpc.tls (pvescaler certs makes what it needs), or grpc.insecure: true.';
    throw new InvalidConfig('CONFIG_INVALID', 'grpc has neither tls nor insecure: true', { hint });
  }
  warn(
    `grpc.insecure: port ${at.port} is open without TLS; whoever reaches it can make and delete VMs`,
  );
  return { kind: 'plaintext' };
}

/**
 * Before the first look at everything, an answer would show an empty world; after the leadership is lost, one that
 * another process has changed since.
 */
function missing({ fleet, settings }: ExternalGrpcOptions): readonly string[] {
  const regions = new Set(settings.groups.flatMap((group) => group.regions));
  const unread = [...regions].filter((region) => !fleet.forecast.isComplete(region));
  return [
    ...(fleet.view.isLoaded ? [] : ['the records']),
    ...(unread.length < regions.size || regions.size === 0
      ? []
      : unread.map((region) => `the first look at region ${region} by the process that drives`)),
  ];
}

/** Rounds and requests follow by themselves; this is for what other processes write meanwhile. */
async function follow(options: ExternalGrpcOptions, signal: AbortSignal): Promise<void> {
  const { fleet, clock, warn, followEveryMs = FOLLOW_EVERY_MS } = options;
  const told = new Set<string>();
  while (!signal.aborted) {
    await fleet.view.refresh({ signal }).catch((error: unknown) => {
      if (!signal.aborted) tellOnce(told, asPvescalerError(error).message, warn);
    });
    for (const words of differences(options)) tellOnce(told, words, warn);
    await clock.sleep(followEveryMs, { signal }).catch(() => undefined);
  }
}

function tellOnce(told: Set<string>, words: string, warn: (message: string) => void): void {
  if (told.has(words)) return;
  told.add(words);
  warn(words);
}

/** In words; undefined when the autoscaler can be answered. */
function notReady(
  { signal }: ExternalGrpcOptions,
  waitingFor: () => readonly string[],
): string | undefined {
  const waits = signal?.aborted === true ? ['the next process, this one ends'] : waitingFor();
  return waits.length === 0 ? undefined : `not ready, waiting for ${waits.join(' and ')}`;
}

/** Every call: refused while we are not ready, told to whoever counts, its errors in gRPC's words. */
function attended(options: ExternalGrpcOptions, refusal: () => string | undefined): Around {
  const { clock, onCall } = options;
  return async (rpc, work) => {
    const since = clock.monotonic();
    // One that lasts for as long as somebody watches says nothing about how fast we are.
    const told = (code: string) => {
      if (rpc.kind === 'unary') onCall?.({ rpc: rpc.name, code, ms: clock.monotonic() - since });
    };
    try {
      const refused = rpc.service === CloudProvider.typeName ? refusal() : undefined;
      if (refused !== undefined) throw new GrpcError('Unavailable', refused);
      const answer = await work();
      told('OK');
      return answer;
    } catch (error) {
      const ours = translated(rpc.name, error, options);
      told(ours.status);
      throw ours;
    }
  };
}

function translated(rpc: string, error: unknown, { warn }: ExternalGrpcOptions): GrpcError {
  const ours = grpcError(error);
  if (ours.status === 'Internal' && !(error instanceof GrpcError)) {
    const stack = error instanceof Error ? error.stack : undefined;
    warn(`fault in ${rpc}: ${stack ?? String(error)}`);
  }
  return ours;
}
