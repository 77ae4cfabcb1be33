// SPDX-License-Identifier: Apache-2.0
// The part of the composition root that only `serve` needs: telemetry, HTTP listeners and front ends. main.ts imports it, so
// that both are in one file of the bundle: the paths below are relative to it.
import { readFile } from 'node:fs/promises';
import { getAsset, isSea } from 'node:sea';
import type { AutoscalerSettings } from './autoscaler/index.ts';
import type { Config } from './config/index.ts';
import type { GrpcServerOptions } from './externalgrpc/worker/messages.ts';
import type {
  DashboardServerOptions,
  FrontEndOptions,
  HealthServerOptions,
  RunningFrontEnd,
} from './serve/index.ts';
import type { Telemetry } from './setup/index.ts';
import { startThread, systemClock, type ThreadProgram } from './system/index.ts';

export async function openTelemetry(log: Config['log']): Promise<Telemetry> {
  const { createLog, createMetrics, withJournalTelemetry } = await import('./telemetry/index.ts');
  const metrics = createMetrics({ includeProcess: true });
  const lines = createLog({
    ...log,
    write: (line) => void process.stdout.write(line),
    now: () => systemClock.now(),
  });
  return {
    log: lines,
    meters: metrics,
    metrics,
    instrumentStore: (store) => withJournalTelemetry(store, { log: lines, meters: metrics }),
  };
}

export async function startHealthServer({ listen: address, ...sources }: HealthServerOptions) {
  const { createHealthApp, listen } = await import('./http/index.ts');
  return listen(createHealthApp(sources), address, 'http.health');
}

export async function startDashboard({ listen: address, sources }: DashboardServerOptions) {
  const { createDashboardApp, listen } = await import('./http/index.ts');
  const app = createDashboardApp({ ...sources, readFile: readPage });
  return listen(app, address, 'http.dashboard');
}

/** A single-file binary contains the files of the page. */
async function readPage(name: string): Promise<string | undefined> {
  if (isSea()) return getAsset(`ui/${name}`, 'utf8');
  return readFile(new URL(`./ui/${name}`, import.meta.url), 'utf8');
}

export async function startFrontEnd(
  options: FrontEndOptions,
): Promise<RunningFrontEnd | undefined> {
  return options.config.mode === 'externalgrpc'
    ? startGrpcServer(options)
    : startStandalone(options);
}

async function startStandalone(options: FrontEndOptions): Promise<RunningFrontEnd | undefined> {
  const { config, store, cluster, setDrainCheck } = options;
  if (cluster === undefined) return undefined;
  const { startAutoscaler } = await import('./autoscaler/index.ts');
  const running = startAutoscaler({
    ...options,
    ...autoscalerSettings(config),
    cluster,
    journal: store.journal,
    namespace: config.cluster.namespace,
  });
  setDrainCheck(running.checkDrain);
  return {
    ...running,
    replaceConfig: (next) => running.replaceSettings(autoscalerSettings(next)),
  };
}

function autoscalerSettings(config: Config): AutoscalerSettings {
  const { pools, intervals, guards, autoscaler, pricing, gpu } = config;
  const settings = { ...autoscaler, guards, pricing, gpuLabel: gpu.label };
  return { pools, settings, scanMs: intervals.scanMs };
}

/** A single-file binary contains the program of the thread. */
function grpcWorker(): ThreadProgram {
  if (isSea()) return { source: getAsset('grpc-worker', 'utf8') };
  return new URL('./grpc-worker.js', import.meta.url);
}

async function startGrpcServer(options: FrontEndOptions): Promise<RunningFrontEnd> {
  const { config, fleet, clock, log, meters, signal, onRefresh } = options;
  const { superviseGrpcWorker } = await import('./externalgrpc/worker/supervise.ts');
  const { listen, tls, insecure, expander } = config.grpc;
  const workerOptions: GrpcServerOptions = {
    settings: grpcSettings(config),
    state: workerState(config),
    listen,
    tls,
    insecure,
    expander,
  };
  const server = await superviseGrpcWorker({
    channel: startThread(grpcWorker(), { name: 'grpc', input: workerOptions }),
    forecast: fleet.forecast,
    clock,
    warn: (message) => log.warn(message),
    onCall({ rpc, code, ms }) {
      if (rpc === 'Refresh' && code === 'OK') onRefresh();
      meters.add('pvescaler_grpc_calls_total', { rpc, code });
      meters.observe('pvescaler_grpc_call_duration_seconds', { rpc }, ms / 1_000);
    },
    signal,
  });
  const { port, expanderPort, failed } = server;
  const plugin = expanderPort === undefined ? '' : `, expander on port ${expanderPort}`;
  return {
    description: `gRPC for the Cluster Autoscaler on port ${port}${insecure ? ' without TLS' : ''}${plugin}`,
    waitingFor: () => server.waitingFor(),
    failed,
    replaceConfig: (next) => server.replaceSettings(grpcSettings(next)),
    close: () => server.close(),
  };
}

/** The thread opens the same records with connections of its own. */
function workerState({ state, cluster }: Config): GrpcServerOptions['state'] {
  const { path, kubernetes } = state;
  const { kubeconfigPath, context } = cluster;
  return { path, kubernetes: kubernetes && { ...kubernetes, kubeconfigPath, context } };
}

function grpcSettings({ pools, pricing, gpu }: Config): GrpcServerOptions['settings'] {
  return { pools, pricing, gpu };
}
