// SPDX-License-Identifier: Apache-2.0
// How each class of error looks from outside. One table, so that the gRPC face, the HTTP API, the CLI,
// Kubernetes events and metrics cannot disagree about the same failure.
import type { ErrorClass } from './error-codes.ts';

export interface Surface {
  /** gRPC status number. Never 12: the Cluster Autoscaler reads UNIMPLEMENTED as "use the defaults". */
  readonly grpcStatus: number;
  readonly httpStatus: number;
  readonly exitCode: number;
  /** `reason` of a Kubernetes Event. */
  readonly eventReason: string;
  /** Value of the `error` label of metrics. */
  readonly metricLabel: string;
}

export const SURFACES: Readonly<Record<ErrorClass, Surface>> = {
  NotFound: surface(5, 404, 4, 'NotFound'),
  Conflict: surface(10, 409, 5, 'Conflict'),
  NoCapacity: surface(8, 503, 6, 'NoCapacity'),
  Unauthorized: surface(7, 403, 7, 'Unauthorized'),
  NotOwned: surface(9, 409, 8, 'NotOwned'),
  Unreachable: surface(14, 502, 9, 'Unreachable'),
  TimedOut: surface(4, 504, 10, 'TimedOut'),
  InvalidConfig: surface(9, 422, 3, 'InvalidConfig'),
  InvalidRequest: surface(3, 400, 2, 'InvalidRequest'),
  UnsupportedVersion: surface(9, 501, 11, 'UnsupportedVersion'),
  TaskFailed: surface(2, 502, 12, 'TaskFailed'),
  StoreUnusable: surface(14, 507, 13, 'StoreUnusable'),
  LostLeadership: surface(14, 503, 14, 'LostLeadership'),
  Cancelled: surface(1, 499, 130, 'Cancelled'),
  Bug: surface(13, 500, 1, 'InternalError'),
};

// oxlint-disable-next-line max-params -- a row of the table above, in the order of its columns
function surface(
  grpcStatus: number,
  httpStatus: number,
  exitCode: number,
  eventReason: string,
): Surface {
  const metricLabel = eventReason
    .replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`)
    .toLowerCase();
  return { grpcStatus, httpStatus, exitCode, eventReason, metricLabel };
}
