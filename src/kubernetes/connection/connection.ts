// SPDX-License-Identifier: Apache-2.0
import type { Transport } from '../../ports/transport.ts';

export interface Credentials {
  /** Value of the Authorization header. */
  readonly authorization?: string;
  readonly client?: { readonly certPem: string; readonly keyPem: string };
}

/** How to reach one API server, and the identity to use. */
export interface ClusterConnection {
  readonly server: string;
  /** CA bundle that the server is verified against, byte for byte; undefined: the system's roots. */
  readonly caPem: string | undefined;
  readonly isInsecure: boolean;
  readonly serverName: string | undefined;
  /** Called before every request: tokens rotate, and plugins issue short-lived ones. */
  credentials(): Promise<Credentials>;
  /** The server refused these: reads files and runs plugins again, unless newer credentials are in use already. */
  renew(refused: Credentials): void;
  /** Ends running exec plugins. */
  close(): void;
}

/** TLS settings of a transport to the API server. */
export interface ConnectionTls extends Pick<Credentials, 'client'> {
  readonly caPem: string | undefined;
  readonly isInsecure: boolean;
  readonly serverName: string | undefined;
}

export type OpenTransport = (tls: ConnectionTls) => Promise<Transport>;

/** Where the connection settings are read from. */
export type ConnectionSource =
  | { readonly kind: 'kubeconfig'; readonly path: string; readonly context?: string | undefined }
  /** The service account of the pod that this process runs in. */
  | {
      readonly kind: 'in-cluster';
      /** Prefix of the paths of its files; absent: none. */
      readonly root?: string;
    };
