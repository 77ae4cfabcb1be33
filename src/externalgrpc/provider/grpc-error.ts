// SPDX-License-Identifier: Apache-2.0
import { asPvescalerError } from '../../ports/errors.ts';
import { GrpcError, statusNamed } from '../server/status.ts';

/**
 * The status of the table and the sentence, which ends up in events that people read. A fault of ours tells nothing
 * of itself to the outside.
 */
export function grpcError(error: unknown): GrpcError {
  if (error instanceof GrpcError) return error;
  const ours = asPvescalerError(error);
  const message = ours.class === 'Bug' ? 'internal error; see the log' : ours.message;
  return new GrpcError(statusNamed(ours.externalCodes.grpcStatus), message, { cause: error });
}
