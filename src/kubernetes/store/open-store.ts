// SPDX-License-Identifier: Apache-2.0
import type { Store } from '../../ports/store.ts';
import { AuthenticatedTransport } from '../connection/authenticated-transport.ts';
import type { ConnectionSource, OpenTransport } from '../connection/connection.ts';
import type { RunProgram } from '../connection/exec-plugin.ts';
import { KubernetesStore, type KubernetesStoreOptions } from './kubernetes-store.ts';

interface OpenStoreOptions extends Omit<KubernetesStoreOptions, 'transport' | 'server'> {
  readonly source: ConnectionSource;
  readonly openTransport: OpenTransport;
  /** Runs a kubeconfig's exec plugin. */
  readonly runProgram: RunProgram;
}

/**
 * Resolves when all records are read. Rejects, and closes `local`, when the API server does not answer or does not know
 * the kinds (STORE_NOT_INSTALLED).
 */
export async function openKubernetesStore(options: OpenStoreOptions): Promise<Store> {
  const { loadConnection } = await import('../connection/load-connection.ts');
  const { source, openTransport, runProgram, ...rest } = options;
  const connection = await loadConnection(source, { clock: options.clock, runProgram });
  const transport = new AuthenticatedTransport(connection, openTransport);
  const { server } = connection;
  const store = new KubernetesStore({ ...rest, transport, server });
  try {
    await store.open();
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}
