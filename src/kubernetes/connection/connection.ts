// SPDX-License-Identifier: Apache-2.0
import type { Transport } from '../../ports/transport.ts';

export interface Credentials {
  /** The Authorization header; absent: none. */
  readonly authorization?: string;
  readonly client?: { readonly certPem: string; readonly keyPem: string };
}

/** How to reach one API server and who we are there. */
export interface Connection {
  readonly server: string;
  /** What the server is trusted by, byte for byte; undefined: the system's roots. */
  readonly caPem: string | undefined;
  readonly isInsecure: boolean;
  readonly serverName: string | undefined;
  /** Asked before every request: tokens are rotated, plugins give short-lived ones. */
  credentials(): Promise<Credentials>;
  /** The API server does not take these: files are read and plugins asked anew. Others' are none of its business. */
  renew(refused: Credentials): void;
  /** Ends what is under way to get credentials. */
  close(): void;
}

/** What a transport to the API server needs to know. */
export interface ConnectionTls extends Pick<Credentials, 'client'> {
  readonly caPem: string | undefined;
  readonly isInsecure: boolean;
  readonly serverName: string | undefined;
}

export type OpenTransport = (tls: ConnectionTls) => Promise<Transport>;

/** Where the connection is described. */
export type ConnectionSource =
  | { readonly kind: 'kubeconfig'; readonly path: string; readonly context?: string | undefined }
  /** The service account of the pod this runs in. */
  | {
      readonly kind: 'in-cluster';
      /** What the paths of its files begin with; absent: the root. */
      readonly root?: string;
    };
