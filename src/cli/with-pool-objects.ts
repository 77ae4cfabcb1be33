// SPDX-License-Identifier: Apache-2.0
// Commands know the pools of ProxmoxPool objects, too: otherwise their machines would be taken for those of removed pools.
import type { LoadedConfig, LoadResult } from '../config/index.ts';
import { Unreachable } from '../ports/errors.ts';
import type { PoolObject } from '../ports/pool-objects.ts';
import { type ConfigOptions, readConfigFor } from './config-options.ts';
import type { CliContext } from './context.ts';

const MAX_READ_MS = 10_000;
const POLL_MS = 100;

/** The config together with the objects, if it says that there are any. An object that is left out has its reason in its status. */
export async function withPoolObjects(
  context: CliContext,
  options: ConfigOptions,
  loaded: LoadedConfig,
): Promise<LoadResult> {
  if (!loaded.config.cluster.poolObjects) return loaded;
  const all = await readPoolObjects(context, loaded);
  const { PoolDefinitions } = await import('../serve/index.ts');
  const definitions = new PoolDefinitions({
    objects: { all: () => all },
    source: { load: (_, pools) => readConfigFor(context, options, { pools }) },
    current: () => loaded,
  });
  return definitions.load(undefined);
}

async function readPoolObjects(
  { adapters, clock }: CliContext,
  { config }: LoadedConfig,
): Promise<readonly PoolObject[]> {
  const objects = await adapters.openPoolObjects(config.cluster, { onError: () => undefined });
  if (objects === undefined) throw unread('there is no access to Kubernetes');
  const limit = clock.monotonic() + MAX_READ_MS;
  try {
    for (;;) {
      const all = objects.all();
      if (all !== undefined) return all;
      const error = objects.lastError();
      const isTransient = error === undefined || error.retry === 'backoff';
      if (!isTransient || clock.monotonic() > limit) throw unread(error?.message ?? 'no answer');
      await clock.sleep(POLL_MS);
    }
  } finally {
    await objects.close();
  }
}

function unread(why: string): Unreachable {
  return new Unreachable('KUBERNETES_UNREACHABLE', `ProxmoxPool objects cannot be read: ${why}`, {
    hint: 'cluster.poolObjects is set, so machines of pools that are objects would be taken for those of removed pools.',
  });
}
