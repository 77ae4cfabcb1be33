// SPDX-License-Identifier: Apache-2.0
// Maps each error class to its gRPC status, HTTP status, exit code, Event reason and metric label. One table keeps all
// front ends consistent.
import type { ErrorClass } from './error-codes.ts';

export interface ExternalCodes {
  /** gRPC status number. Never 12: the Cluster Autoscaler reads UNIMPLEMENTED as "use the defaults". */
  readonly grpcStatus: number;
  readonly httpStatus: number;
  readonly exitCode: number;
  /** `reason` of a Kubernetes Event. */
  readonly eventReason: string;
  /** Value of the `error` label of metrics. */
  readonly metricLabel: string;
}

export const EXTERNAL_CODES: Readonly<Record<ErrorClass, ExternalCodes>> = {
  NotFound: codes(5, 404, 4, 'NotFound'),
  Conflict: codes(10, 409, 5, 'Conflict'),
  NoCapacity: codes(8, 503, 6, 'NoCapacity'),
  Unauthorized: codes(7, 403, 7, 'Unauthorized'),
  NotOwned: codes(9, 409, 8, 'NotOwned'),
  Unreachable: codes(14, 502, 9, 'Unreachable'),
  TimedOut: codes(4, 504, 10, 'TimedOut'),
  /** The VM exists and runs, and is kept. */
  NotReady: codes(4, 504, 16, 'NotReady'),
  /** What was begun was undone; everything is as it was before. */
  Undone: codes(9, 409, 15, 'Undone'),
  InvalidConfig: codes(9, 422, 3, 'InvalidConfig'),
  InvalidRequest: codes(3, 400, 2, 'InvalidRequest'),
  UnsupportedVersion: codes(9, 501, 11, 'UnsupportedVersion'),
  TaskFailed: codes(2, 502, 12, 'TaskFailed'),
  StoreUnusable: codes(14, 507, 13, 'StoreUnusable'),
  LostLeadership: codes(14, 503, 14, 'LostLeadership'),
  Cancelled: codes(1, 499, 130, 'Cancelled'),
  Bug: codes(13, 500, 1, 'InternalError'),
};

// oxlint-disable-next-line max-params -- a row of the table above, in the order of its columns
function codes(
  grpcStatus: number,
  httpStatus: number,
  exitCode: number,
  eventReason: string,
): ExternalCodes {
  const metricLabel = eventReason
    .replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`)
    .toLowerCase();
  return { grpcStatus, httpStatus, exitCode, eventReason, metricLabel };
}
