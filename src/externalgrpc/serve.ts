// SPDX-License-Identifier: Apache-2.0
// Starts the gRPC listeners and keeps the view that they serve up to date.
import type { DescService } from '@bufbuild/protobuf';
import type { PoolConfig } from '../config/types/index.ts';
import { describeDifference, nodeGroupsOf, sizeKey } from '../pools/index.ts';
import type { Clock } from '../ports/clock.ts';
import { asPvescalerError, InvalidConfig } from '../ports/errors.ts';
import { createExpanderService } from './expander/expander.ts';
import { CloudProvider } from './gen/externalgrpc/cloud_provider_pb.js';
import { Expander } from './gen/grpcplugin/expander_pb.js';
import { Health } from './gen/health/health_pb.js';
import {
  createCloudProviderService,
  Provider,
  type ProviderParts,
} from './provider/cloud-provider.ts';
import { toGrpcError } from './provider/grpc-error.ts';
import type { CertificatePaths, ReadText } from './server/certificates.ts';
import type { CallInterceptor } from './server/dispatch.ts';
import { type Listener, listen, type Security } from './server/listener.ts';
import { Services } from './server/services.ts';
import { addReflection, createHealthService, REFLECTION } from './server/standard-services.ts';
import { GrpcError } from './server/status.ts';

interface Address {
  readonly host: string;
  readonly port: number;
}

export interface ExternalGrpcOptions extends Pick<ProviderParts, 'fleet' | 'settings'> {
  readonly listen: Address;
  readonly tls: (Required<CertificatePaths> & { readonly allow: readonly string[] }) | undefined;
  /** Without TLS: any client that can reach the port can create and delete machines. */
  readonly insecure: boolean;
  readonly expander: { readonly listen: Address } | undefined;
  readonly clock: Clock;
  readonly read: ReadText;
  readonly warn: (message: string) => void;
  /**
   * Aborted when the process shuts down: clients get a GOAWAY and connect to another replica, calls in progress finish, and
   * later ones are refused, because no driver may be left to carry them out.
   */
  readonly signal?: AbortSignal;
  /** Why the records may lack what other processes wrote; undefined: they do not. */
  readonly staleness?: () => string | undefined;
  /** Called after each unary call, for metrics. */
  readonly onCall?: (call: GrpcCall) => void;
  /** Interval at which the view reads what other processes wrote. */
  readonly refreshIntervalMs?: number;
  /** Maximum time without progress in a call whose client has data to send or to read. */
  readonly stallTimeoutMs?: number;
}

export interface GrpcCall {
  readonly rpc: string;
  readonly code: string;
  readonly ms: number;
}

export interface RunningExternalGrpc {
  readonly port: number;
  readonly expanderPort: number | undefined;
  /** Empty when the server is ready; else what it waits for, as text. */
  waitingFor(): readonly string[];
  close(): Promise<void>;
}

const REFRESH_INTERVAL_MS = 1_000;
const MAX_CONCURRENT_CALLS = 1_024;
/** Any client may call the expander. The autoscaler makes one call at a time and can do without a response. */
const MAX_CONCURRENT_EXPANDER_CALLS = 16;

export async function serveExternalGrpc(
  options: ExternalGrpcOptions,
): Promise<RunningExternalGrpc> {
  const provider = new Provider(options);
  const waitingFor = () => missingPrerequisites(options);
  const security = readSecurity(options);
  const abort = new AbortController();
  const shared = {
    clock: options.clock,
    read: options.read,
    warn: options.warn,
    stallTimeoutMs: options.stallTimeoutMs,
  };
  const main = await listen({
    ...shared,
    listen: options.listen,
    security,
    maxConcurrentCalls: MAX_CONCURRENT_CALLS,
    intercept: instrumentCalls(options, () => notReadyReason(options, waitingFor)),
    services: buildServices(provider, options, waitingFor),
  });
  const expanderListener = await listenExpander(options, provider, security).catch(
    async (error: unknown) => {
      await main.close();
      throw error;
    },
  );
  const refreshing = refreshView(options, abort.signal);
  const closeListeners = () => Promise.all([main.close(), expanderListener?.close()]);
  const onShutdown = () => void closeListeners();
  options.signal?.addEventListener('abort', onShutdown, { once: true });
  return {
    port: main.port,
    expanderPort: expanderListener?.port,
    waitingFor,
    async close() {
      abort.abort();
      options.signal?.removeEventListener('abort', onShutdown);
      await Promise.all([closeListeners(), refreshing]);
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
    const message =
      'grpc.expander needs grpc.tls: the autoscaler connects to the expander over TLS only';
    return Promise.reject(new InvalidConfig('CONFIG_INVALID', message));
  }
  const { certPath, keyPath } = security.paths;
  return listen({
    ...options,
    listen: options.expander.listen,
    // The autoscaler presents no client certificate to an expander; this service changes nothing.
    security: { kind: 'tls', paths: { certPath, keyPath }, allow: undefined },
    maxConcurrentCalls: MAX_CONCURRENT_EXPANDER_CALLS,
    intercept: instrumentCalls(options, () => undefined),
    services: withReflection(
      new Services().add(
        Expander,
        createExpanderService(() => provider.groups),
      ),
      [Expander],
    ),
  });
}

function buildServices(
  provider: Provider,
  { clock }: ExternalGrpcOptions,
  waitingFor: () => readonly string[],
): Services {
  const own = [CloudProvider, Health];
  const names = [...own, ...REFLECTION].map(({ typeName }) => typeName);
  const isReady = () => waitingFor().length === 0;
  const all = new Services()
    .add(CloudProvider, createCloudProviderService(provider))
    .add(Health, createHealthService({ services: names, isReady, clock }));
  return withReflection(all, own);
}

function withReflection(all: Services, own: readonly DescService[]): Services {
  addReflection(all, [...own, ...REFLECTION]);
  return all;
}

function readSecurity({ tls, insecure, warn, listen: address }: ExternalGrpcOptions): Security {
  if (tls !== undefined) {
    if (tls.allow.length === 0) warn('grpc.tls.allow is empty: every client is refused');
    const { certPath, keyPath, clientCaPath, allow } = tls;
    return { kind: 'tls', paths: { certPath, keyPath, clientCaPath }, allow };
  }
  if (!insecure) {
    const hint =
      'Set grpc.tls (create the files with pvescaler certs), or set grpc.insecure: true.';
    throw new InvalidConfig('CONFIG_INVALID', 'grpc has neither tls nor insecure: true', { hint });
  }
  warn(
    `grpc.insecure: port ${address.port} is open without TLS; any client that can reach it can create and delete VMs`,
  );
  return { kind: 'plaintext' };
}

/**
 * Before the first read, a response would show an empty fleet. After the driver loses its lease, or while changes of other
 * processes do not arrive, a response would show a state that another process may have changed since.
 */
function missingPrerequisites(options: ExternalGrpcOptions): readonly string[] {
  const { fleet, settings } = options;
  const stale = options.staleness?.();
  const regions = new Set(settings.value.pools.flatMap((group) => group.regions));
  const unread = [...regions].filter((region) => !fleet.forecast.isComplete(region));
  return [
    ...(fleet.view.isLoaded ? [] : ['the records to load']),
    ...(stale === undefined ? [] : [`current records: ${stale}`]),
    ...(unread.length < regions.size || regions.size === 0
      ? []
      : unread.map((region) => `the first read of region ${region}`)),
  ];
}

/** Reconcile passes and requests refresh the view themselves; this loop picks up what other processes write. */
async function refreshView(options: ExternalGrpcOptions, signal: AbortSignal): Promise<void> {
  const { fleet, clock, warn, refreshIntervalMs = REFRESH_INTERVAL_MS } = options;
  const warned = new Set<string>();
  while (!signal.aborted) {
    await fleet.view.refresh({ signal }).catch((error: unknown) => {
      if (!signal.aborted) warnOnce(warned, asPvescalerError(error).message, warn);
    });
    for (const message of capacityDifferences(options)) warnOnce(warned, message, warn);
    await clock.sleep(refreshIntervalMs, { signal }).catch(() => undefined);
  }
}

/** One warning per pool whose joined nodes offer other resources than the config promises. */
function capacityDifferences({ fleet, settings }: ExternalGrpcOptions): readonly string[] {
  return settings.value.pools.flatMap(nodeGroupsOf<PoolConfig>).flatMap(({ pool }) => {
    const learned = fleet.view.pools.get(pool.name)?.allocatable[sizeKey(pool.size)];
    return (learned === undefined ? undefined : describeDifference(pool, learned)) ?? [];
  });
}

function warnOnce(warned: Set<string>, message: string, warn: (message: string) => void): void {
  if (warned.has(message)) return;
  warned.add(message);
  warn(message);
}

/** Undefined when calls can be served. */
function notReadyReason(
  { signal }: ExternalGrpcOptions,
  waitingFor: () => readonly string[],
): string | undefined {
  if (signal?.aborted === true) return 'not ready: this process is shutting down';
  const missing = waitingFor();
  return missing.length === 0 ? undefined : `not ready, waiting for ${missing.join(' and ')}`;
}

/** Wraps every call: refuses it while the server is not ready, reports it to `onCall`, translates its errors. */
function instrumentCalls(
  options: ExternalGrpcOptions,
  refusal: () => string | undefined,
): CallInterceptor {
  const { clock, onCall } = options;
  return async (rpc, work) => {
    const since = clock.monotonic();
    // The duration of a stream is the client's choice, not a latency.
    const report = (code: string) => {
      if (rpc.kind === 'unary') onCall?.({ rpc: rpc.name, code, ms: clock.monotonic() - since });
    };
    try {
      const refused = rpc.service === CloudProvider.typeName ? refusal() : undefined;
      if (refused !== undefined) throw new GrpcError('Unavailable', refused);
      const response = await work();
      report('OK');
      return response;
    } catch (error) {
      const translated = translateError(rpc.name, error, options);
      report(translated.status);
      throw translated;
    }
  };
}

function translateError(rpc: string, error: unknown, { warn }: ExternalGrpcOptions): GrpcError {
  const translated = toGrpcError(error);
  if (translated.status === 'Internal' && !(error instanceof GrpcError)) {
    const stack = error instanceof Error ? error.stack : undefined;
    warn(`internal error in ${rpc}: ${stack ?? String(error)}`);
  }
  return translated;
}
