// SPDX-License-Identifier: Apache-2.0
import type { Config, PoolConfig } from '../../config/index.ts';
import type { OpenFleet } from '../open-fleet.ts';

interface MissingAccess {
  readonly pool: string;
  /** Whether machines can be made all the same. */
  readonly isFatal: boolean;
  readonly message: string;
}

/** What cannot be done without access to Kubernetes. */
export function missingAccess({
  cluster,
  config,
}: Pick<OpenFleet, 'cluster' | 'config'>): readonly MissingAccess[] {
  if (cluster !== undefined) return [];
  return config.pools
    .filter(({ join }) => join !== 'none' || config.mode === 'externalgrpc')
    .map(({ name, join }) => {
      const isFatal = makesTokens(config, join);
      return { pool: name, isFatal, message: `pool ${name} ${whatIsMissed(join, isFatal)}` };
    });
}

function whatIsMissed(join: PoolConfig['join'], isFatal: boolean): string {
  if (isFatal) {
    return 'joins its machines to a cluster, and there is no access to one: none can be made';
  }
  if (join === 'none') {
    return 'has Nodes that cannot be seen: the Cluster Autoscaler takes machines away whose Node has another provider id than proxmox://REGION/ID';
  }
  return 'joins its machines to a cluster that cannot be seen: a machine counts as ready when its guest is up, and its Node is not removed';
}

function makesTokens({ join }: Config, kind: keyof Config['join'] | 'none'): boolean {
  if (kind === 'none') return false;
  const recipe = join[kind];
  if (recipe === undefined || recipe.token.kind === 'auto') return true;
  return kind === 'kubeadm' && (join.kubeadm?.caCertHashes.length ?? 0) === 0;
}
