// SPDX-License-Identifier: Apache-2.0
import { PvescalerError, TimedOut, Unauthorized, Unreachable } from '../ports/errors.ts';

/** What OpenSSL and Node call a certificate that they do not trust. */
const CERTIFICATE_REFUSED =
  /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(GET|VERIFY|DECODE)|ERR_TLS_CERT_|INVALID_(CA|PURPOSE)|HOSTNAME_MISMATCH|PATH_LENGTH_)/;

const TIMED_OUT = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
]);

/** Who it is that cannot be reached: the operator looks at another place for each. */
export type UnreachablePeer = 'PVE_UNREACHABLE' | 'KUBERNETES_UNREACHABLE';

interface Circumstances {
  readonly unreachable: UnreachablePeer;
  readonly origin: string;
  readonly requestSent: boolean;
}

/** Failures of names, sockets and TLS as our errors. The cause is kept; it holds no headers and no body. */
export function translateSocketError(error: unknown, at: Circumstances): Error {
  const own = ownCause(error);
  if (own !== undefined) return own;
  const code = codeOf(error);
  const details = { cause: error, facts: { requestSent: at.requestSent, socketError: code } };
  if (CERTIFICATE_REFUSED.test(code)) {
    return new Unauthorized('TLS_NOT_TRUSTED', `${at.origin} is not trusted: ${code}`, details);
  }
  if (TIMED_OUT.has(code)) {
    return new TimedOut('REQUEST_TIMED_OUT', `${at.origin} cannot be reached: ${code}`, details);
  }
  return new Unreachable(at.unreachable, `${at.origin} cannot be reached: ${code}`, details);
}

/** The pinning connector raises an error of ours, which may arrive wrapped. */
function ownCause(error: unknown): PvescalerError | undefined {
  if (error instanceof PvescalerError) return error;
  if (!(error instanceof Error) || error.cause === undefined) return undefined;
  return ownCause(error.cause);
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  if (!(error instanceof Error)) return 'UNKNOWN';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return error.cause instanceof Error ? codeOf(error.cause) : error.name;
}
