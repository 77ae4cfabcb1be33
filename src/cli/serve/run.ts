// SPDX-License-Identifier: Apache-2.0
// One process, any mode: health first, so that whoever watches over it hears why it is not ready; then both sides,
// the face, and the loop that drives the fleet until the process is told to end.
import type { LoadedConfig } from '../../config/index.ts';
import { asPvescalerError, Cancelled, UnsupportedVersion } from '../../ports/errors.ts';
import type { CliContext, Telemetry } from '../context.ts';
import { needsCluster, type OpenFleet, openFleet } from '../open-fleet.ts';
import { missingAccess } from './access.ts';
import type { RunningFace } from './face.ts';
import { awaitSides, firstSync } from './first-sync.ts';
import { setGauges } from './gauges.ts';
import { Vigil } from './vigil.ts';

/** How long the present round may go on after the process was told to end. */
const FINISH_MS = 20_000;
const OPEN_AGAIN_MS = 5_000;

interface Serving {
  readonly context: CliContext;
  readonly loaded: LoadedConfig;
  readonly telemetry: Telemetry;
  readonly vigil: Vigil;
  /** Set once it is open. */
  fleet: OpenFleet | undefined;
}

export async function serve(context: CliContext, loaded: LoadedConfig): Promise<void> {
  const { config } = loaded;
  const telemetry = await context.adapters.openTelemetry(config.log);
  const { log, meters } = telemetry;
  const vigil = new Vigil({ clock: context.clock, log, meters });
  awaitSides(Object.keys(config.regions), needsCluster(config), vigil);
  const serving: Serving = { context, loaded, telemetry, vigil, fleet: undefined };
  const health = await listenHealth(serving);
  const { mode, pools, regions } = config;
  log.info('pvescaler starts', {
    version: context.version,
    mode,
    health: health?.url ?? 'off',
    pools: pools.map(({ name }) => name),
    regions: Object.keys(regions),
  });
  tellPlanned(serving);
  try {
    const open = await openPatiently(serving);
    if (open === undefined) return;
    try {
      await work(serving, open);
    } finally {
      serving.fleet = undefined;
      await open.close();
    }
  } finally {
    await health?.close();
    log.info('pvescaler has ended');
  }
}

/** A peer that does not answer yet is waited for; a config that cannot work ends the process. */
async function openPatiently(serving: Serving): Promise<OpenFleet | undefined> {
  const { context, loaded, telemetry, vigil } = serving;
  const { log } = telemetry;
  const { signal, clock } = context;
  while (!signal.aborted) {
    try {
      return await openFleet(context, loaded.config, {
        to: 'drive',
        warn: (warning) => log.warn(warning),
        telemetry,
      });
    } catch (error) {
      const ours = asPvescalerError(error);
      if (ours.retry !== 'backoff') throw ours;
      log.warn('not everything can be reached yet; it is tried again', { error: ours });
      vigil.pulse();
      await clock.sleep(OPEN_AGAIN_MS, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}

async function work(serving: Serving, open: OpenFleet): Promise<void> {
  const { context, loaded, telemetry, vigil } = serving;
  const { log, meters } = telemetry;
  const { clock, signal } = context;
  serving.fleet = open;
  if (open.cluster === undefined) vigil.seen('Kubernetes');
  for (const { pool, message, isFatal } of missingAccess(open)) {
    if (isFatal) vigil.awaits('Kubernetes', message);
    vigil.cannot(pool, message);
    log.warn(message);
  }
  const end = new AbortController();
  const ending = new AbortController();
  let face: RunningFace | undefined;
  const syncing = firstSync(open, { clock, vigil, signal: ending.signal });
  try {
    const { config } = loaded;
    const parts = { config, fleet: open.fleet, store: open.store, cluster: open.cluster };
    face = await context.adapters.startFace({ ...parts, clock, log, meters, signal });
    if (face !== undefined) log.info('serving', { face: face.what });
    else if (config.mode === 'externalgrpc') throw noFace(config.mode);
    else log.warn(NO_LOOP);
    vigil.faceWaitsFor = () => face?.waitingFor() ?? [];
    const driving = driveUntilEnd(serving, open, end);
    try {
      await Promise.race([driving, face?.failed ?? driving]);
    } finally {
      end.abort();
      await driving.catch(() => undefined);
    }
  } finally {
    ending.abort();
    await Promise.all([syncing, face?.close()]);
  }
}

const NO_LOOP =
  'the standalone scaling loop is not in this release: minimum sizes are kept and requests from the command line are carried out, but pending pods cause nothing';

function noFace(mode: string): UnsupportedVersion {
  return new UnsupportedVersion(
    'FEATURE_NOT_THERE',
    `mode ${mode} cannot be served by this release`,
    { hint: 'Until then pvescaler pool scale makes and removes machines; see the changelog.' },
  );
}

/** The first signal lets the present round come to its end, within a bound. */
async function driveUntilEnd(
  { context, telemetry, vigil }: Serving,
  { fleet }: OpenFleet,
  hard: AbortController,
): Promise<void> {
  const { clock, signal: finish } = context;
  const over = new AbortController();
  const onFinish = () => {
    telemetry.log.info('told to end: the present round is finished first');
    vigil.ends();
    clock.sleep(FINISH_MS, { signal: over.signal }).then(
      () => hard.abort(),
      () => undefined,
    );
  };
  if (finish.aborted) return;
  finish.addEventListener('abort', onFinish, { once: true });
  try {
    await fleet.runDriver({ signal: hard.signal, finish, events: vigil.events });
  } catch (error) {
    if (!(error instanceof Cancelled)) throw error;
  } finally {
    over.abort();
    finish.removeEventListener('abort', onFinish);
  }
}

async function listenHealth(serving: Serving) {
  const { context, loaded, telemetry, vigil } = serving;
  const { health, metrics } = loaded.config.http;
  if (health === undefined) return undefined;
  const { meters } = telemetry;
  meters.set('pvescaler_build_info', [{ labels: { version: context.version }, value: 1 }]);
  const read = async () => {
    const { fleet } = serving;
    const status = await fleet?.fleet.status();
    const now = context.clock.now();
    if (status !== undefined) setGauges(meters, { status, report: vigil.report, now });
    meters.set('pvescaler_ready', [{ labels: {}, value: Number(vigil.readiness().ready) }]);
    meters.set('pvescaler_leader', [{ labels: {}, value: Number(vigil.isLeading) }]);
    return telemetry.metrics.read();
  };
  return context.adapters.serveHealth({
    listen: health,
    health: vigil.health,
    readiness: vigil.readiness,
    metrics: metrics ? { contentType: telemetry.metrics.contentType, read } : undefined,
  });
}

/** Saying what is missing beats silently doing less than the config asks for. */
function tellPlanned({ loaded, telemetry }: Serving): void {
  for (const { path, feature } of loaded.planned) {
    telemetry.log.warn(`${path} has no effect in this release: ${feature} is not there yet`);
  }
}
