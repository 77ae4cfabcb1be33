// SPDX-License-Identifier: Apache-2.0
// Translates error responses of the API server into our errors. No other file does this.
import {
  Bug,
  Conflict,
  type ErrorDetails,
  InvalidRequest,
  NotFound,
  type PvescalerError,
  Unauthorized,
  Unreachable,
} from '../ports/errors.ts';

/** The `Status` object of an error response. */
export interface ApiStatus {
  /** The HTTP status, or the code in an ERROR event of a watch. */
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  readonly causes: readonly StatusCause[];
}

interface StatusCause {
  readonly reason: string;
  readonly message: string;
  /** Path of the field concerned; empty if there is none. */
  readonly field: string;
}

const RIGHTS_HINT =
  'Apply the manifests in deploy/, or grant the account the right named in the message.';
const CREDENTIALS_HINT =
  "Check the user in the kubeconfig, or the service account's token: the API server refused the credentials.";

export function readStatus(code: number, body: unknown): ApiStatus {
  const status = asRecord(body);
  const causes = asRecord(status['details'])['causes'];
  return {
    code: typeof status['code'] === 'number' ? status['code'] : code,
    reason: asString(status['reason']),
    message: asString(status['message']) || `HTTP ${code}`,
    causes: (Array.isArray(causes) ? causes : []).map((one: unknown) => ({
      reason: asString(asRecord(one)['reason']),
      message: asString(asRecord(one)['message']),
      field: asString(asRecord(one)['field']),
    })),
  };
}

/** The requested resource version is too old. */
export function isExpired({ code, reason }: ApiStatus): boolean {
  return code === 410 || reason === 'Expired' || reason === 'Gone';
}

export function translateStatus(status: ApiStatus, doing: string): PvescalerError {
  const message = `${doing}: ${status.message}`;
  const details = { facts: { httpStatus: status.code, reason: status.reason, requestSent: true } };
  return (
    translateRefusal(status.code, message, details) ??
    translateFailure(status.code, message, details)
  );
}

function translateRefusal(
  code: number,
  message: string,
  details: ErrorDetails,
): PvescalerError | undefined {
  switch (code) {
    case 401:
      return new Unauthorized('CREDENTIALS_REFUSED', message, {
        ...details,
        hint: CREDENTIALS_HINT,
      });
    case 403:
      return new Unauthorized('PERMISSION_MISSING', message, { ...details, hint: RIGHTS_HINT });
    case 404:
      return new NotFound('KUBERNETES_OBJECT_NOT_FOUND', message, details);
    case 409:
      return new Conflict('KUBERNETES_OBJECT_CHANGED', message, details);
    case 400:
    case 422:
      return new InvalidRequest('REQUEST_INVALID', message, details);
    default:
      return undefined;
  }
}

/** 410 (expired) is handled where a resource version is sent; anywhere else the request can be repeated. */
function translateFailure(code: number, message: string, details: ErrorDetails): PvescalerError {
  const isTransient = code === 410 || code === 429 || code >= 500;
  return isTransient
    ? new Unreachable('KUBERNETES_UNREACHABLE', message, details)
    : new Bug('UNEXPECTED_ANSWER', message, details);
}

export function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : {};
}

export function asString(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
