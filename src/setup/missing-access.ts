// SPDX-License-Identifier: Apache-2.0
// Pools that need access to Kubernetes, when there is none.
import type { Config, PoolConfig } from '../config/index.ts';
import type { OpenFleet } from './open-fleet.ts';

interface MissingAccess {
  readonly pool: string;
  /** False when the pool can create machines all the same. */
  readonly blocksCreation: boolean;
  readonly message: string;
}

export function findMissingAccess({
  cluster,
  config,
}: Pick<OpenFleet, 'cluster' | 'config'>): readonly MissingAccess[] {
  if (cluster !== undefined) return [];
  return config.pools
    .filter(({ join }) => join !== 'none' || config.mode === 'externalgrpc')
    .map(({ name, join }) => {
      const blocksCreation = needsClusterToJoin(config, join);
      return {
        pool: name,
        blocksCreation,
        message: `pool ${name}: ${consequence(join, blocksCreation)}`,
      };
    });
}

function consequence(join: PoolConfig['join'], blocksCreation: boolean): string {
  if (blocksCreation) {
    return 'no machine can be created, since joining a cluster needs access to Kubernetes and there is none';
  }
  if (join === 'none') {
    return 'its Nodes cannot be read without access to Kubernetes; the Cluster Autoscaler deletes machines whose Node has a provider id other than proxmox://REGION/ID';
  }
  return 'its Nodes cannot be read without access to Kubernetes; a machine counts as ready when its guest is up, and its Node is not deleted with it';
}

/** Bootstrap tokens and the CA hash are read from the cluster unless they are configured. */
function needsClusterToJoin({ join }: Config, kind: keyof Config['join'] | 'none'): boolean {
  if (kind === 'none') return false;
  const recipe = join[kind];
  if (recipe === undefined || recipe.token.kind === 'auto') return true;
  return kind === 'kubeadm' && (join.kubeadm?.caCertHashes.length ?? 0) === 0;
}
