// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import { Bug, type PvescalerError } from '../../ports/errors.ts';
import type { Random } from '../../ports/random.ts';
import type { Store } from '../../ports/store.ts';
import type { RequestFence } from '../../ports/write-fence.ts';
import type { ConnectionSource, OpenTransport } from '../connection/connection.ts';
import type { RunProgram } from '../connection/exec-plugin.ts';

export interface OpenStoreOptions {
  readonly source: ConnectionSource;
  readonly openTransport: OpenTransport;
  /** Runs a kubeconfig's exec plugin; absent: exec plugins are refused. */
  readonly runProgram?: RunProgram;
  /** Namespace of the objects; it must exist. */
  readonly namespace: string;
  /** Has the leases and the journal; closed with the store. */
  readonly local: Store;
  readonly clock: Clock;
  readonly random: Random;
  /** Asked before each write that has a lease: a process that is no longer the driver sends none. */
  readonly fence?: RequestFence | undefined;
  /** Receives errors of watches and of deferred writes, which no call can reject with. */
  readonly onBackgroundError?: ((error: PvescalerError) => void) | undefined;
}

/** Resolves when all records are read; rejects when the API server does not answer or the CRDs are missing. */
export function openKubernetesStore(_options: OpenStoreOptions): Promise<Store> {
  return Promise.reject(new Bug('BUG', 'not implemented yet'));
}
