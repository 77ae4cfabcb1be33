// SPDX-License-Identifier: Apache-2.0
// What the API server means by an answer that is not a success, in our errors. The one place that knows.
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

/** The `Status` object that comes with every refusal. */
export interface ApiStatus {
  /** The HTTP status, or the code that an ERROR event of a watch carries. */
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  readonly causes: readonly StatusCause[];
}

interface StatusCause {
  readonly reason: string;
  readonly message: string;
  /** Path of the field it is about; empty where it is about none. */
  readonly field: string;
}

const RIGHTS_HINT =
  'The account in use may not do this; apply the manifests in deploy/, or give it the right that is named.';
const CREDENTIALS_HINT =
  "The API server does not accept the credentials: check the kubeconfig's user, or the service account's token.";

export function readStatus(code: number, body: unknown): ApiStatus {
  const status = recordOf(body);
  const causes = recordOf(status['details'])['causes'];
  return {
    code: typeof status['code'] === 'number' ? status['code'] : code,
    reason: textOf(status['reason']),
    message: textOf(status['message']) || `HTTP ${code}`,
    causes: (Array.isArray(causes) ? causes : []).map((one: unknown) => ({
      reason: textOf(recordOf(one)['reason']),
      message: textOf(recordOf(one)['message']),
      field: textOf(recordOf(one)['field']),
    })),
  };
}

/** The resource version that was asked for is too old to go on from. */
export function isExpired({ code, reason }: ApiStatus): boolean {
  return code === 410 || reason === 'Expired' || reason === 'Gone';
}

export function translateStatus(status: ApiStatus, doing: string): PvescalerError {
  const message = `${doing}: ${status.message}`;
  const details = { facts: { httpStatus: status.code, reason: status.reason, requestSent: true } };
  return refusal(status.code, message, details) ?? trouble(status.code, message, details);
}

function refusal(code: number, message: string, details: ErrorDetails): PvescalerError | undefined {
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

/** 410 is for those who asked with a resource version; here it means: ask again. */
function trouble(code: number, message: string, details: ErrorDetails): PvescalerError {
  const isPassing = code === 410 || code === 429 || code >= 500;
  return isPassing
    ? new Unreachable('KUBERNETES_UNREACHABLE', message, details)
    : new Bug('UNEXPECTED_ANSWER', message, details);
}

export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : {};
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
