// SPDX-License-Identifier: Apache-2.0
import type { ClusterInspector } from '../ports/inspection.ts';
import { ApiClient } from './api-client.ts';
import {
  DEFAULT_REQUEST_TIMEOUT_MS,
  KubernetesCluster,
  type KubernetesClusterOptions,
} from './cluster.ts';
import { AuthenticatedTransport } from './connection/authenticated-transport.ts';
import type { ConnectionSource, OpenTransport } from './connection/connection.ts';
import type { RunProgram } from './connection/exec-plugin.ts';
import { createClusterInspector } from './inspector.ts';
import { KubernetesPoolObjects, type PoolObjectsOptions } from './pools/pool-objects.ts';
import { SecretReader } from './secret-reader.ts';

export { MANAGED_BY_LABEL } from './bootstrap-tokens.ts';
export {
  KubernetesCluster,
  type KubernetesClusterOptions,
} from './cluster.ts';
export type { ConnectionSource, ConnectionTls, OpenTransport } from './connection/connection.ts';
export { findConnectionSource } from './connection/find-source.ts';
export { KubernetesPoolObjects } from './pools/pool-objects.ts';
export { RIGHTS, type Right, SERVICE_ACCOUNT } from './rights.ts';
export type { SecretReader } from './secret-reader.ts';
export { RESOURCE_DEFINITIONS } from './store/definitions.ts';
export { RECORD_KINDS } from './store/kinds.ts';
export { KubernetesStore } from './store/kubernetes-store.ts';
export { openKubernetesStore } from './store/open-store.ts';
export { fromObject } from './store/record-objects.ts';

interface OpenClusterOptions
  extends Omit<KubernetesClusterOptions, 'transport' | 'server' | 'caPem'> {
  readonly source: ConnectionSource;
  readonly openTransport: OpenTransport;
  /** Runs a kubeconfig's exec plugin; absent: exec plugins are refused. */
  readonly runProgram?: RunProgram;
}

/** Reads the connection settings and starts the watches; resolves before the API server has responded. */
export async function openKubernetesCluster(
  options: OpenClusterOptions,
): Promise<KubernetesCluster> {
  const { loadConnection } = await import('./connection/load-connection.ts');
  const { source, openTransport, runProgram = refuseToRun, ...rest } = options;
  const connection = await loadConnection(source, { clock: options.clock, runProgram });
  const transport = new AuthenticatedTransport(connection, openTransport);
  const { server, caPem } = connection;
  return new KubernetesCluster({ ...rest, transport, server, caPem });
}

/** Reads the connection settings; sends no request yet. */
export async function openClusterInspector(
  options: Pick<OpenClusterOptions, 'source' | 'openTransport' | 'runProgram' | 'clock'> & {
    readonly namespace: string;
  },
): Promise<ClusterInspector> {
  const { loadConnection } = await import('./connection/load-connection.ts');
  const { source, openTransport, runProgram = refuseToRun, clock, namespace } = options;
  const connection = await loadConnection(source, { clock, runProgram });
  const transport = new AuthenticatedTransport(connection, openTransport);
  const { server, caPem } = connection;
  const requestTimeoutMs = DEFAULT_REQUEST_TIMEOUT_MS;
  const api = new ApiClient({ transport, server, clock, requestTimeoutMs });
  return createClusterInspector({ api, server, caPem, namespace, close: () => transport.close() });
}

interface OpenPoolObjectsOptions
  extends Omit<PoolObjectsOptions, 'transport' | 'server'>,
    Pick<OpenClusterOptions, 'source' | 'openTransport' | 'runProgram'> {}

/** Reads the connection settings and starts the watch; resolves before the API server has responded. */
export async function openPoolObjects(
  options: OpenPoolObjectsOptions,
): Promise<KubernetesPoolObjects> {
  const { loadConnection } = await import('./connection/load-connection.ts');
  const { source, openTransport, runProgram = refuseToRun, clock, ...rest } = options;
  const connection = await loadConnection(source, { clock, runProgram });
  const transport = new AuthenticatedTransport(connection, openTransport);
  return new KubernetesPoolObjects({ ...rest, transport, server: connection.server, clock });
}

interface SecretReaderOptions
  extends Pick<OpenClusterOptions, 'source' | 'openTransport' | 'runProgram' | 'clock'> {}

/** Opens a connection for each read: reads are rare, and no watch is needed. */
export function openSecretReader(options: SecretReaderOptions): SecretReader {
  const { source, openTransport, runProgram = refuseToRun, clock } = options;
  return new SecretReader(async (work) => {
    const { loadConnection } = await import('./connection/load-connection.ts');
    const connection = await loadConnection(source, { clock, runProgram });
    const transport = new AuthenticatedTransport(connection, openTransport);
    const { server } = connection;
    const requestTimeoutMs = DEFAULT_REQUEST_TIMEOUT_MS;
    try {
      return await work(new ApiClient({ transport, server, clock, requestTimeoutMs }));
    } finally {
      await transport.close();
    }
  }, clock);
}

function refuseToRun(): Promise<never> {
  return Promise.reject(new Error('this process cannot run exec plugins'));
}
