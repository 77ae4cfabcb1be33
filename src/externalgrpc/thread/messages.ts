// SPDX-License-Identifier: Apache-2.0
// What the thread that drives and the thread that answers tell each other. Records are not among it: both read the
// store.
import type { ForecastReport, PoolLimits } from '../../fleet/index.ts';
import type { SerializedError } from '../../ports/errors.ts';
import type { ExternalGrpcOptions, GrpcCall } from '../index.ts';

/** Plain data all of it. */
export interface FaceOrder
  extends Pick<ExternalGrpcOptions, 'settings' | 'listen' | 'tls' | 'insecure' | 'expander'> {
  readonly terms: Readonly<Record<string, PoolLimits>>;
  readonly statePath: string;
}

export type ToFace =
  | { readonly kind: 'forecast'; readonly report: ForecastReport }
  /** The process shall end: nothing new is taken. */
  | { readonly kind: 'ending' }
  | { readonly kind: 'close' };

export type FromFace =
  | {
      readonly kind: 'listening';
      readonly port: number;
      readonly expanderPort: number | undefined;
    }
  | { readonly kind: 'waiting'; readonly waitingFor: readonly string[] }
  | { readonly kind: 'calls'; readonly calls: readonly GrpcCall[] }
  | { readonly kind: 'warning'; readonly message: string }
  | { readonly kind: 'closed' }
  /** Nothing comes after it. */
  | { readonly kind: 'failed'; readonly error: SerializedError };
