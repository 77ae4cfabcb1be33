// SPDX-License-Identifier: Apache-2.0
// Messages between the driver thread and the gRPC worker thread. Both read records from the store, so no message
// carries records.
import type { ForecastReport } from '../../fleet/index.ts';
import type { SerializedError } from '../../ports/errors.ts';
import type { ExternalGrpcOptions, ExternalGrpcSettings, GrpcCall } from '../index.ts';

/** Plain data: it is cloned into the worker thread. */
export interface GrpcServerOptions
  extends Pick<ExternalGrpcOptions, 'listen' | 'tls' | 'insecure' | 'expander'> {
  readonly settings: ExternalGrpcSettings;
  readonly state: WorkerState;
}

export interface WorkerState {
  /** Of the database of this machine. */
  readonly path: string;
  /** Where the records are if not in that database. */
  readonly kubernetes:
    | {
        readonly namespace: string;
        readonly kubeconfigPath: string | undefined;
        readonly context: string | undefined;
      }
    | undefined;
}

export type MessageToWorker =
  | { readonly kind: 'forecast'; readonly report: ForecastReport }
  | { readonly kind: 'settings'; readonly settings: ExternalGrpcSettings }
  /** The process is shutting down: the server sends GOAWAY, finishes its calls and refuses new ones. */
  | { readonly kind: 'ending' }
  | { readonly kind: 'close' };

export type MessageFromWorker =
  | {
      readonly kind: 'listening';
      readonly port: number;
      readonly expanderPort: number | undefined;
    }
  | { readonly kind: 'waiting'; readonly waitingFor: readonly string[] }
  | { readonly kind: 'calls'; readonly calls: readonly GrpcCall[] }
  | { readonly kind: 'warning'; readonly message: string }
  | { readonly kind: 'closed' }
  /** The last message. */
  | { readonly kind: 'failed'; readonly error: SerializedError };
