// SPDX-License-Identifier: Apache-2.0
// What a command may use of the world. main.ts fills it in; tests fill it in with what they like.
import type { Config, RegionConfig, SecretSource } from '../config/index.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { PvescalerError } from '../ports/errors.ts';
import type { Hypervisor } from '../ports/hypervisor.ts';
import type { Log } from '../ports/log.ts';
import type { Meters } from '../ports/meters.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';
import type { RequestFence } from '../ports/write-fence.ts';
import type { FaceParts, RunningFace } from './serve/face.ts';

export interface Files {
  /** Undefined when there is no such file. Rejects with the system's own error otherwise. */
  read(path: string): Promise<string | undefined>;
  /** Makes missing folders. An existing file is left alone unless told otherwise. */
  write(
    path: string,
    text: string,
    options: { readonly overwrite: boolean },
  ): Promise<'written' | 'exists-already'>;
}

export interface ProxmoxSimOrder {
  /** Used when no cluster is described. */
  readonly hosts: number;
  readonly cluster?: { readonly path: string; readonly text: string };
  readonly version?: '8.4' | '9.2';
  readonly speed: number;
  readonly listen: string;
  readonly tls: boolean;
  /** What `saveState` gave earlier. */
  readonly state?: string;
}

export interface RunningSim {
  readonly url: string;
  /** Of the certificate; undefined without TLS. */
  readonly fingerprint: string | undefined;
  readonly version: string;
  readonly hosts: readonly string[];
  /** How to log in to the made-up cluster; a described one has its own. */
  readonly credentials: readonly string[];
  saveState(): string;
  close(): Promise<void>;
}

export interface Telemetry {
  readonly log: Log;
  readonly meters: Meters;
  readonly metrics: { readonly contentType: string; read(): Promise<string> };
  /** The same store; its journal is told to the log and counted. */
  telling(store: Store): Store;
}

/** What an adapter is opened with. */
export interface ConnectOptions {
  /** Asked before anything is sent that changes something, and told how that ended. */
  readonly fence: RequestFence;
  /** Absent where nobody reads them. */
  readonly meters?: Meters | undefined;
  /** Trouble in the background, where nobody can be told by a rejection. */
  readonly onError?: ((error: PvescalerError) => void) | undefined;
}

export interface ConnectedCluster {
  readonly cluster: Cluster;
  /** URL of the API server as a kubeconfig names it; one from inside the cluster means nothing to a machine. */
  readonly server: string | undefined;
}

export interface HealthOrder {
  readonly listen: { readonly host: string; readonly port: number };
  readonly health: () => { readonly healthy: boolean; readonly problems: readonly string[] };
  readonly readiness: () => {
    readonly ready: boolean;
    readonly waitingFor: readonly string[];
    readonly limits: readonly string[];
    readonly leader: boolean;
  };
  readonly metrics: Telemetry['metrics'] | undefined;
}

export interface CliContext {
  /** Results. Nothing else goes there, so that it can be piped. */
  readonly out: (text: string) => void;
  /** Progress, warnings, errors. */
  readonly err: (text: string) => void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeFolder: string;
  readonly workingFolder: string;
  /** Folders whose files a reboot may remove. */
  readonly tempFolders: readonly string[];
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  /** Aborted by the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
  readonly version: string;
  /** Host and process, for people who ask who drives. */
  readonly processName: string;
  /** Adapters, loaded when asked for. */
  readonly adapters: {
    /** InvalidConfig with every problem of the cluster file; InvalidRequest when it cannot listen there. */
    startProxmoxSim(order: ProxmoxSimOrder): Promise<RunningSim>;
    /** StoreUnusable/STORE_UNREADABLE when there is none: reading commands make no database. */
    openStore(
      path: string,
    ): Promise<{ readonly store: Store; readonly warnings: readonly string[] }>;
    /** As openStore, but makes the database where there is none. */
    makeStore(
      path: string,
    ): Promise<{ readonly store: Store; readonly warnings: readonly string[] }>;
    /** Reads the region's secrets; nothing is sent yet. */
    connect(
      region: RegionConfig,
      options: ConnectOptions,
    ): Promise<{ readonly hypervisor: Hypervisor; readonly warnings: readonly string[] }>;
    /** Undefined when no kubeconfig is named or found and this is no pod. Nothing has been answered yet. */
    connectCluster(
      cluster: Config['cluster'],
      options: ConnectOptions,
    ): Promise<ConnectedCluster | undefined>;
    /** Read anew each time; the value is nobody's to keep. */
    readSecret(
      source: SecretSource,
    ): Promise<{ readonly value: string; readonly warnings: readonly string[] }>;
    openTelemetry(log: Config['log']): Promise<Telemetry>;
    /** InvalidConfig when it cannot listen there. */
    serveHealth(
      order: HealthOrder,
    ): Promise<{ readonly url: string; readonly close: () => Promise<void> }>;
    /** The face that the mode asks for; undefined where the fleet alone is driven. */
    startFace(parts: FaceParts): Promise<RunningFace | undefined>;
    /** A small text from the web. */
    readUrl(url: string): Promise<string>;
  };
}

/** What a command gets to work with. */
export interface CommandHost {
  readonly context: CliContext;
  /** Ends with this exit code although nothing was thrown (problems were already told). */
  exitWith(code: number): void;
}
