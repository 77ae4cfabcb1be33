// SPDX-License-Identifier: Apache-2.0
// Starts to take pools from ProxmoxPool objects, if the config says so.
import { InvalidConfig } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { Daemon, DaemonPools } from './daemon.ts';
import { PoolDefinitions } from './pool-definitions.ts';
import { PoolWatcher } from './pool-objects.ts';
import { PoolObjectReconciler } from './reconcile-pool-objects.ts';

/** Resolves when the objects are read and applied. Before, machines would be taken for those of removed pools. */
export async function openPools(
  daemon: Daemon,
  { fleet, cluster }: OpenFleet,
): Promise<DaemonPools | undefined> {
  const { context, telemetry, watchdog, source } = daemon;
  const { config } = daemon.loaded;
  if (!config.cluster.poolObjects) return undefined;
  const { log } = telemetry;
  const { clock, adapters } = context;
  const objects = await adapters.openPoolObjects(config.cluster, {
    onError: (error) => log.debug('an error occurred in the background', { error }),
  });
  if (objects === undefined) throw noCluster();
  const definitions = new PoolDefinitions({ objects, source, current: () => daemon.loaded });
  const { namespace } = config.cluster;
  const regions = Object.keys(config.regions);
  const shared = { objects, definitions, clock, log };
  const reconciler = new PoolObjectReconciler({ ...shared, fleet, cluster, namespace, regions });
  const reload = async () => (await daemon.reloader?.reloadPools()) ?? 'done';
  const watcher = new PoolWatcher({ ...shared, reconciler, reload, watchdog });
  const pools = { objects, definitions, watcher };
  await watcher.waitForFirstRead(context.signal);
  daemon.pools = pools;
  await watcher.apply();
  return pools;
}

function noCluster(): InvalidConfig {
  return new InvalidConfig('CONFIG_INVALID', 'cluster.poolObjects needs access to Kubernetes', {
    hint: 'Set cluster.kubeconfig or --kubeconfig, or run in a pod with a service account.',
  });
}
