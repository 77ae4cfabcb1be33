// SPDX-License-Identifier: Apache-2.0
// What opening a fleet needs from the process. main.ts implements it; tests implement it with fakes.
import type { Config, RegionConfig, SecretSource } from '../config/index.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { DriverLock } from '../ports/driver-lock.ts';
import type { PvescalerError } from '../ports/errors.ts';
import type { Hypervisor } from '../ports/hypervisor.ts';
import type { Log } from '../ports/log.ts';
import type { Meters } from '../ports/meters.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';
import type { RequestFence } from '../ports/write-fence.ts';

export interface Files {
  /** Undefined when the file does not exist. Rejects with the system's error otherwise. */
  read(path: string): Promise<string | undefined>;
  /** Creates missing folders. Keeps an existing file unless `overwrite` is set. */
  write(
    path: string,
    text: string,
    options: { readonly overwrite: boolean },
  ): Promise<'written' | 'exists-already'>;
}

export interface Telemetry {
  readonly log: Log;
  readonly meters: Meters;
  readonly metrics: { readonly contentType: string; read(): Promise<string> };
  /** The same store; entries of its journal are also logged and counted. */
  instrumentStore(store: Store): Store;
}

export interface ConnectOptions {
  /** Checked before each request that changes something, and notified of its outcome. */
  readonly fence: RequestFence;
  /** Where Secrets of the config are read. */
  readonly cluster: Config['cluster'];
  /** Absent in commands, which serve no metrics. */
  readonly meters?: Meters | undefined;
  /** `nodes`: the other objects of the cluster are not read. */
  readonly watch: 'nodes' | 'all';
  /** Receives errors of background work, which no caller awaits. */
  readonly onBackgroundError?: ((error: PvescalerError) => void) | undefined;
}

export interface ConnectedCluster {
  readonly cluster: Cluster;
  /** URL of the API server in the kubeconfig. Undefined in a pod: its service address is unreachable for machines. */
  readonly server: string | undefined;
}

export interface OpenedStore {
  readonly store: Store;
  readonly warnings: readonly string[];
  /** Undefined where it proves nothing. */
  readonly driverLock?: DriverLock | undefined;
}

export interface KubernetesStoreOptions {
  readonly namespace: string;
  /** For journal and leases; closed with the store. */
  readonly local: Store;
  /** Asked before each write of the driver. */
  readonly fence?: RequestFence | undefined;
  /** Receives errors of background work, which no caller awaits. */
  readonly onBackgroundError?: ((error: PvescalerError) => void) | undefined;
}

export interface SetupAdapters {
  /** StoreUnusable/STORE_UNREADABLE when the database does not exist. */
  openStore(path: string): Promise<OpenedStore>;
  /** Creates the database when it does not exist. */
  openOrCreateStore(path: string): Promise<OpenedStore>;
  /** Undefined outside a pod when no kubeconfig is configured or found. */
  openKubernetesStore(
    cluster: Config['cluster'],
    options: KubernetesStoreOptions,
  ): Promise<Store | undefined>;
  /** Reads the region's secrets; sends no request yet. */
  connectProxmox(
    region: RegionConfig,
    options: ConnectOptions,
  ): Promise<{ readonly hypervisor: Hypervisor; readonly warnings: readonly string[] }>;
  /** Undefined outside a pod when no kubeconfig is configured or found. The connection is not checked yet. */
  connectKubernetes(
    cluster: Config['cluster'],
    options: ConnectOptions,
  ): Promise<ConnectedCluster | undefined>;
  /** Reads the source on each call, so that a rotated secret is picked up. Do not keep the value. */
  readSecret(
    source: SecretSource,
    cluster: Config['cluster'],
  ): Promise<{ readonly value: string; readonly warnings: readonly string[] }>;
  /** A small text over HTTP. */
  readUrl(url: string): Promise<string>;
}

export interface SetupContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  /** Host and process id; identifies the driver to operators. */
  readonly processName: string;
  readonly adapters: SetupAdapters;
}
