// SPDX-License-Identifier: Apache-2.0
import type { CustomJoin, K3sJoin, KubeadmJoin, NoJoin, Rke2Join } from '../../bootstrap/index.ts';

/** The join token of machines. Its value is never stored: it is created or read when it is sent. */
export type TokenSettings =
  | { readonly kind: 'auto'; readonly ttlMs: number }
  | { readonly kind: 'static'; readonly read: () => Promise<string> };

interface WithToken {
  readonly token: TokenSettings;
}

export type JoinSettings =
  | NoJoin
  | (Omit<K3sJoin, 'token'> & WithToken)
  | (Omit<Rke2Join, 'token'> & WithToken)
  /** An empty list of hashes means those of the cluster's CA. */
  | (Omit<KubeadmJoin, 'token'> & WithToken)
  | (Omit<CustomJoin, 'token'> & WithToken);

/** Whether machines cannot be created without access to the cluster. */
export function needsCluster(join: JoinSettings): boolean {
  if (join.kind === 'none') return false;
  return join.token.kind === 'auto' || (join.kind === 'kubeadm' && join.caCertHashes.length === 0);
}
