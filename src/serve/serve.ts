// SPDX-License-Identifier: Apache-2.0
// One process, any mode. The health server starts first, so that probes report why the process is not ready.
import { type Config, describePlannedKey, type LoadedConfig } from '../config/index.ts';
import { type CheckDrain, type DriverEvents, MinimumDelay } from '../fleet/index.ts';
import {
  asPvescalerError,
  Cancelled,
  type PvescalerError,
  Unreachable,
  UnsupportedVersion,
} from '../ports/errors.ts';
import { needsCluster, type OpenFleet, openFleet } from '../setup/index.ts';
import { createReloader, warnAboutMissingAccess } from './apply-config.ts';
import { type ConfigSource, ConfigWatcher } from './config-watcher.ts';
import type { ServeContext } from './context.ts';
import type { Daemon } from './daemon.ts';
import { Dashboard } from './dashboard.ts';
import type { RunningFrontEnd } from './front-end.ts';
import { setGauges } from './gauges.ts';
import { openPools } from './open-pools.ts';
import { expectReads, waitForSync } from './wait-for-sync.ts';
import { Watchdog } from './watchdog.ts';

/** Time for the current reconcile pass to finish after the first signal. */
const SHUTDOWN_GRACE_MS = 20_000;
const OPEN_RETRY_MS = 5_000;

export interface ServedConfig {
  readonly loaded: LoadedConfig;
  /** Of the file; undefined without one. */
  readonly text: string | undefined;
  readonly source: ConfigSource;
}

/** Runs until the context's signal aborts, or until the fleet or the front end fails; that error is logged and returned. */
export async function serve(
  context: ServeContext,
  { loaded, text, source }: ServedConfig,
): Promise<PvescalerError | undefined> {
  const { config } = loaded;
  const telemetry = await context.adapters.openTelemetry(config.log);
  const { log, meters } = telemetry;
  const watchdog = new Watchdog({ clock: context.clock, log, meters });
  expectReads(Object.keys(config.regions), needsCluster(config), watchdog);
  const minimumDelay = config.mode === 'externalgrpc' ? new MinimumDelay(context.clock) : undefined;
  const watcher = new ConfigWatcher(
    {
      clock: context.clock,
      readText: () => source.readText(),
      reload: async (...changed) => (await daemon.reloader?.reload(...changed)) ?? 'done',
    },
    text,
  );
  context.onHangUp(() => watcher.request());
  const daemon: Daemon = {
    context,
    loaded,
    source,
    text,
    watcher,
    telemetry,
    watchdog,
    minimumDelay,
    open: undefined,
    frontEnd: undefined,
    checkDrain: undefined,
    reloader: undefined,
    pools: undefined,
  };
  try {
    await runDaemon(daemon);
    return undefined;
  } catch (cause) {
    const error = asPvescalerError(cause);
    log.error('pvescaler cannot continue', { error });
    return error;
  } finally {
    log.info('pvescaler stopped');
  }
}

async function runDaemon(daemon: Daemon): Promise<void> {
  const { context, loaded, telemetry } = daemon;
  const { mode, pools, regions } = loaded.config;
  const health = await startHealthServer(daemon);
  telemetry.log.info('pvescaler starts', {
    version: context.version,
    mode,
    health: health?.url ?? 'off',
    pools: pools.map(({ name }) => name),
    regions: Object.keys(regions),
  });
  warnAboutPlannedKeys(daemon);
  const stopDashboard = new AbortController();
  const dashboard = await startDashboard(daemon, stopDashboard.signal);
  try {
    const open = await retryOpenFleet(daemon);
    if (open === undefined) return;
    try {
      await runOpenFleet(daemon, open);
    } finally {
      daemon.open = undefined;
      await open.close();
    }
  } finally {
    stopDashboard.abort();
    await Promise.all([health?.close(), dashboard?.close()]);
  }
}

/** Nothing depends on the dashboard: the daemon continues when its address is in use. */
async function startDashboard(daemon: Daemon, signal: AbortSignal) {
  const { context, loaded, telemetry, watchdog } = daemon;
  const { dashboard: listen, dashboardTokenFile: path, dashboardHosts } = loaded.config.http;
  if (listen === undefined) return undefined;
  const { clock, version } = context;
  const dashboard = new Dashboard({
    config: () => daemon.loaded.config,
    version,
    clock,
    open: () => daemon.open,
    frontEnd: () => daemon.frontEnd,
    problems: () => {
      const { waitingFor, limits } = watchdog.readiness();
      return [...waitingFor, ...limits];
    },
  });
  try {
    const started = await context.adapters.startDashboard({
      listen,
      sources: {
        readState: () => dashboard.readState(),
        actions: dashboard.actions,
        readToken: async () => {
          if (path === undefined) return undefined;
          const source = { kind: 'file', path } as const;
          return (await context.adapters.readSecret(source, loaded.config.cluster)).value.trim();
        },
        hostNames: [...dashboardHosts, listen.host.toLowerCase()],
        clock,
      },
    });
    void dashboard.sample(signal);
    telemetry.log.info(`dashboard on ${started.url}`);
    return started;
  } catch (cause) {
    const error = asPvescalerError(cause);
    telemetry.log.warn('the dashboard is not served', { error });
    return undefined;
  }
}

/** Retries while a peer is unreachable; throws when the config cannot work. Undefined when the signal aborted. */
async function retryOpenFleet(daemon: Daemon): Promise<OpenFleet | undefined> {
  const { context, loaded, telemetry, watchdog } = daemon;
  const { log } = telemetry;
  const { signal, clock } = context;
  while (!signal.aborted) {
    try {
      return await openFleet(context, loaded.config, {
        access: 'drive',
        warn: (warning) => log.warn(warning),
        telemetry,
        ...(loaded.config.mode === 'standalone' && {
          watch: 'all',
          checkDrain: (node, stop) => checkDrain(daemon, node, stop),
        }),
      });
    } catch (cause) {
      const error = asPvescalerError(cause);
      if (error.retry !== 'backoff') throw error;
      log.warn(`opening the fleet failed; retrying in ${OPEN_RETRY_MS / 1_000} s`, { error });
      watchdog.recordHeartbeat();
      await clock.sleep(OPEN_RETRY_MS, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}

async function runOpenFleet(daemon: Daemon, open: OpenFleet): Promise<void> {
  const { context, watchdog } = daemon;
  const { clock } = context;
  daemon.open = open;
  warnAboutMissingAccess(daemon, open);
  const stop = new AbortController();
  const syncing = waitForSync(open, { clock, watchdog, signal: stop.signal });
  const following = followDriver(open, stop.signal);
  let watching: Promise<unknown> | undefined;
  let frontEnd: RunningFrontEnd | undefined;
  daemon.reloader = createReloader(daemon, open);
  try {
    daemon.pools = await openPools(daemon, open);
    if (context.signal.aborted) return;
    frontEnd = await startFrontEnd(daemon, open);
    daemon.frontEnd = frontEnd;
    watchdog.frontEndWaitsFor = () => frontEnd?.waitingFor() ?? [];
    watchdog.staleness = () => open.store.staleness?.();
    const watchers = [
      daemon.watcher,
      ...(daemon.pools === undefined ? [] : [daemon.pools.watcher]),
    ];
    watching = Promise.all(watchers.map((watcher) => watcher.run(stop.signal)));
    await driveUntilStopped(daemon, open, frontEnd?.failed);
  } finally {
    daemon.frontEnd = undefined;
    stop.abort();
    await Promise.all([syncing, following, watching, frontEnd?.close()]);
    await daemon.pools?.objects.close();
    daemon.pools = undefined;
  }
}

/** Replicas that share their records all answer the Cluster Autoscaler, whichever of them drives. */
async function followDriver({ config, fleet }: OpenFleet, signal: AbortSignal): Promise<void> {
  if (config.mode === 'externalgrpc' && config.state.kubernetes !== undefined)
    await fleet.followCapacity(signal);
}

const NO_CLUSTER =
  'without access to Kubernetes, pools keep their minimum size and follow the command line, but pending pods do not scale them up';

async function checkDrain(
  daemon: Daemon,
  ...[node, signal]: Parameters<CheckDrain>
): ReturnType<CheckDrain> {
  if (daemon.checkDrain === undefined)
    throw new Unreachable('VIEW_STALE', 'the autoscaler has not started yet');
  return daemon.checkDrain(node, signal);
}

async function startFrontEnd(
  daemon: Daemon,
  { fleet, store, cluster }: OpenFleet,
): Promise<RunningFrontEnd | undefined> {
  const { config } = daemon.loaded;
  const { clock, random, signal, adapters } = daemon.context;
  const { log, meters } = daemon.telemetry;
  const frontEnd = await adapters.startFrontEnd({
    config,
    fleet,
    store,
    cluster,
    clock,
    random,
    setDrainCheck: (check) => {
      daemon.checkDrain = check;
    },
    log,
    meters,
    signal,
    onRefresh: () => daemon.minimumDelay?.recordRefresh(),
  });
  if (frontEnd !== undefined) log.info(`serving ${frontEnd.description}`);
  else if (config.mode === 'externalgrpc') throw unsupportedMode(config.mode);
  else log.warn(NO_CLUSTER);
  return frontEnd;
}

function unsupportedMode(mode: string): UnsupportedVersion {
  return new UnsupportedVersion('FEATURE_NOT_THERE', `this release cannot serve mode ${mode}`, {
    hint: 'Scale pools with pvescaler pool scale until it can; see the changelog.',
  });
}

/** Rejects with `failed`, or with the error of the driver. */
async function driveUntilStopped(
  daemon: Daemon,
  open: OpenFleet,
  failed: Promise<never> | undefined,
): Promise<void> {
  const stop = new AbortController();
  const driving = driveFleet(daemon, open, stop);
  try {
    await Promise.race([driving, failed ?? driving]);
  } finally {
    stop.abort();
    await driving.catch(() => undefined);
  }
}

/** The first signal lets the current pass finish within SHUTDOWN_GRACE_MS; `stop` interrupts it. */
async function driveFleet(
  daemon: Daemon,
  { fleet, config }: OpenFleet,
  stop: AbortController,
): Promise<void> {
  const { context, telemetry, watchdog, minimumDelay } = daemon;
  const { clock, signal: finish } = context;
  const finished = new AbortController();
  const onFinish = () => {
    telemetry.log.info('stopping after the current reconcile pass', {
      graceSeconds: SHUTDOWN_GRACE_MS / 1_000,
    });
    watchdog.markStopping();
    clock.sleep(SHUTDOWN_GRACE_MS, { signal: finished.signal }).then(
      () => stop.abort(),
      () => undefined,
    );
  };
  if (finish.aborted) return;
  finish.addEventListener('abort', onFinish, { once: true });
  try {
    const driverEvents = eventsOf(watchdog, config);
    const events: DriverEvents = {
      ...driverEvents,
      onPass: (report) => {
        driverEvents.onPass?.(report);
        daemon.pools?.watcher.recordPass(report);
      },
    };
    await fleet.runDriver({ signal: stop.signal, finish, events, minimumDelay });
  } catch (error) {
    if (!(error instanceof Cancelled)) throw error;
  } finally {
    finished.abort();
    finish.removeEventListener('abort', onFinish);
  }
}

/** With records in Kubernetes, every replica has a database of its own, and only leases and its journal in it. */
function eventsOf({ events }: Watchdog, { state }: Config): DriverEvents {
  return state.kubernetes === undefined ? events : { ...events, onSeparateStore: () => undefined };
}

async function startHealthServer(daemon: Daemon) {
  const { context, telemetry, watchdog } = daemon;
  const { health, metrics } = daemon.loaded.config.http;
  if (health === undefined) return undefined;
  const { meters } = telemetry;
  meters.set('pvescaler_build_info', [{ labels: { version: context.version }, value: 1 }]);
  const read = async () => {
    const status = await daemon.open?.fleet.status();
    const now = context.clock.now();
    const { lastPass, leadingSince } = watchdog;
    if (status !== undefined) {
      const hasCluster = daemon.open?.cluster !== undefined;
      const names = Object.keys(daemon.loaded.config.regions);
      const capacity = daemon.open?.fleet.capacity();
      setGauges(meters, {
        status,
        lastPass,
        capacity,
        leadingSince,
        now,
        regions: names,
        hasCluster,
      });
    }
    meters.set('pvescaler_ready', [{ labels: {}, value: Number(watchdog.readiness().ready) }]);
    meters.set('pvescaler_leader', [{ labels: {}, value: Number(watchdog.isLeading) }]);
    return telemetry.metrics.read();
  };
  return context.adapters.startHealthServer({
    listen: health,
    health: watchdog.health,
    readiness: watchdog.readiness,
    metrics: metrics ? { contentType: telemetry.metrics.contentType, read } : undefined,
  });
}

function warnAboutPlannedKeys({ loaded, telemetry }: Daemon): void {
  for (const key of loaded.planned) telemetry.log.warn(describePlannedKey(key));
}
