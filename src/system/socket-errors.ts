// SPDX-License-Identifier: Apache-2.0
import { PvescalerError, TimedOut, Unreachable } from '../ports/errors.ts';

/** Error codes of OpenSSL and Node for untrusted certificates. */
const CERTIFICATE_REFUSED =
  /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(GET|VERIFY|DECODE)|ERR_TLS_CERT_|INVALID_(CA|PURPOSE)|HOSTNAME_MISMATCH|PATH_LENGTH_)/;

const TIMED_OUT = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
]);

/** Names the peer, because the operator checks different things for each. */
export type UnreachableCode = 'PVE_UNREACHABLE' | 'KUBERNETES_UNREACHABLE';

interface FailedExchange {
  readonly unreachable: UnreachableCode;
  readonly origin: string;
  readonly requestSent: boolean;
}

/** Translates DNS, socket and TLS errors. Keeps the cause, which contains no headers and no body. */
export function translateSocketError(error: unknown, exchange: FailedExchange): Error {
  const ours = findOwnError(error);
  if (ours !== undefined) return ours;
  const code = readErrorCode(error);
  const details = { cause: error, facts: { requestSent: exchange.requestSent, socketError: code } };
  if (TIMED_OUT.has(code)) {
    return new TimedOut(
      'REQUEST_TIMED_OUT',
      `${exchange.origin} did not respond in time: ${code}`,
      details,
    );
  }
  return new Unreachable(
    exchange.unreachable,
    `${exchange.origin} cannot be reached: ${code}`,
    details,
  );
}

/** The code of an error about the server's certificate. */
export function certificateError(error: unknown): string | undefined {
  const code = readErrorCode(error);
  return CERTIFICATE_REFUSED.test(code) ? code : undefined;
}

/** A connector throws one of our errors, which undici may wrap. */
function findOwnError(error: unknown): PvescalerError | undefined {
  if (error instanceof PvescalerError) return error;
  if (!(error instanceof Error) || error.cause === undefined) return undefined;
  return findOwnError(error.cause);
}

function readErrorCode(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0)
    return readErrorCode(error.errors[0]);
  if (!(error instanceof Error)) return 'UNKNOWN';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return error.cause instanceof Error ? readErrorCode(error.cause) : error.name;
}
