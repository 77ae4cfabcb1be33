// SPDX-License-Identifier: Apache-2.0
import { Code, ConnectError } from '@connectrpc/connect';
import { asPvescalerError } from '../../ports/errors.ts';

/**
 * The status of the table and the sentence, which ends up in events that people read. A fault of ours tells nothing
 * of itself to the outside.
 */
export function grpcError(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error;
  const ours = asPvescalerError(error);
  const message = ours.class === 'Bug' ? 'internal error; see the log' : ours.message;
  return new ConnectError(message, statusOf(ours.surface.grpcStatus), undefined, undefined, error);
}

/** The numbers of the table are gRPC's own, which are the enum's. */
const CODES: ReadonlyMap<number, Code> = new Map(
  Object.values(Code).flatMap((code) => (typeof code === 'number' ? [[code, code]] : [])),
);

function statusOf(status: number): Code {
  return CODES.get(status) ?? Code.Unknown;
}
