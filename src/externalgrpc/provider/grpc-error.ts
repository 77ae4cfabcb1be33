// SPDX-License-Identifier: Apache-2.0
import { asPvescalerError } from '../../ports/errors.ts';
import { GrpcError, statusName } from '../server/status.ts';

/** Status from the error table, and the message, which ends up in Events. Details of a bug are not sent to clients. */
export function toGrpcError(error: unknown): GrpcError {
  if (error instanceof GrpcError) return error;
  const known = asPvescalerError(error);
  const message = known.class === 'Bug' ? 'internal error; see the log' : known.message;
  return new GrpcError(statusName(known.externalCodes.grpcStatus), message, { cause: error });
}
