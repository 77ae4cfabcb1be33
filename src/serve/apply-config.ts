// SPDX-License-Identifier: Apache-2.0
// The one place where the settings of a running process are replaced: the fleet, the front end and the daemon itself.
import type { Config, LoadedConfig } from '../config/index.ts';
import { findMissingAccess, needsCluster, type OpenFleet } from '../setup/index.ts';
import type { Daemon } from './daemon.ts';
import { ConfigReloader } from './reload-config.ts';

export function createReloader(daemon: Daemon, open: OpenFleet): ConfigReloader {
  const { context, source, watchdog, telemetry } = daemon;
  const { cluster, store } = open;
  return new ConfigReloader({
    source,
    load: (content) => daemon.pools?.definitions.load(content) ?? source.load(content),
    text: daemon.text,
    current: () => daemon.loaded,
    findRestartKeys: ({ config }) => findClusterKeys(daemon.loaded.config, config, open),
    apply: (next) => applyConfig(daemon, open, next),
    clock: context.clock,
    journal: store.journal,
    cluster,
    log: telemetry.log,
    meters: telemetry.meters,
    watchdog,
  });
}

/** The connection to Kubernetes is opened at the start, and only if a pool needs it. */
function findClusterKeys(before: Config, after: Config, { cluster }: OpenFleet): readonly string[] {
  if (cluster !== undefined || needsCluster(before) || !needsCluster(after)) return [];
  return after.pools.filter(({ joins }) => joins).map(({ name }) => `pools.${name}.join`);
}

/** Replaces the settings of every part, each of which takes them up between two passes. */
async function applyConfig(daemon: Daemon, open: OpenFleet, next: LoadedConfig): Promise<void> {
  const settings = await open.readSettings(next.config);
  open.fleet.replaceSettings(settings);
  daemon.frontEnd?.replaceConfig(next.config);
  for (const { name } of daemon.loaded.config.pools) daemon.watchdog.setLimitation(name, undefined);
  daemon.loaded = next;
  warnAboutMissingAccess(daemon, open);
}

export function warnAboutMissingAccess(daemon: Daemon, { cluster }: OpenFleet): void {
  const { telemetry, watchdog, loaded } = daemon;
  if (cluster === undefined) watchdog.markRead('Kubernetes');
  for (const one of findMissingAccess({ cluster, config: loaded.config })) {
    const { pool, message, blocksCreation } = one;
    if (blocksCreation) watchdog.expectRead('Kubernetes', message);
    watchdog.setLimitation(pool, message);
    telemetry.log.warn(message);
  }
}
