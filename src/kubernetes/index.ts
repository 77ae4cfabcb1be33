// SPDX-License-Identifier: Apache-2.0
import { KubernetesCluster, type KubernetesClusterOptions } from './cluster.ts';
import { AuthorizedTransport } from './connection/authorized-transport.ts';
import type { ConnectionSource, OpenTransport } from './connection/connection.ts';
import type { RunProgram } from './connection/exec-plugin.ts';

export {
  DEFAULT_NAMESPACE,
  DEFAULT_REQUEST_TIMEOUT_MS,
  KubernetesCluster,
  type KubernetesClusterOptions,
} from './cluster.ts';
export type { ConnectionSource, ConnectionTls, OpenTransport } from './connection/connection.ts';
export { ACCOUNT, RIGHTS, type Right } from './rights.ts';

export interface OpenClusterOptions
  extends Omit<KubernetesClusterOptions, 'transport' | 'server' | 'caPem'> {
  readonly source: ConnectionSource;
  readonly openTransport: OpenTransport;
  /** For a kubeconfig's exec plugin; absent: there is no way to run one. */
  readonly runProgram?: RunProgram;
}

/** Reads the connection and begins to watch; resolves before anything was heard from the API server. */
export async function openKubernetesCluster(
  options: OpenClusterOptions,
): Promise<KubernetesCluster> {
  const { loadConnection } = await import('./connection/load-connection.ts');
  const { source, openTransport, runProgram = runNothing, ...rest } = options;
  const connection = await loadConnection(source, { clock: options.clock, runProgram });
  const transport = new AuthorizedTransport(connection, openTransport);
  const { server, caPem } = connection;
  return new KubernetesCluster({ ...rest, transport, server, caPem });
}

function runNothing(): Promise<never> {
  return Promise.reject(new Error('nobody runs programs here'));
}
