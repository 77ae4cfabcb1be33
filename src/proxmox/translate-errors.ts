// SPDX-License-Identifier: Apache-2.0
// Turns HTTP statuses and error texts of Proxmox into our errors. Proxmox has no status for "not found" or "conflict":
// nearly every error is 500 with free text. So one table of texts decides, for responses and for exit statuses of tasks.
import {
  Bug,
  Conflict,
  type ErrorDetails,
  InvalidConfig,
  type PvescalerError,
  TaskFailed,
  TimedOut,
  Unauthorized,
  Unreachable,
  UnsupportedVersion,
} from '../ports/errors.ts';
import { KNOWN_ERROR_TEXTS } from './known-error-texts.ts';
import { asObject, asText, parseJson } from './wire-values.ts';

export type Facts = Readonly<Record<string, string | number | boolean>>;

export interface ErrorResponse {
  readonly status: number;
  readonly reason: string;
  readonly body: string;
}

export interface ErrorContext {
  /** `create VM 160 on pve1`: the message starts with it. */
  readonly operation: string;
  readonly facts: Facts;
  /** Replaced by `***` in messages, because Proxmox quotes refused values. */
  readonly secrets: readonly string[];
}

/** Reason phrases of reverse proxies, without information beyond the status. */
const GENERIC_REASON_PHRASE = /^(|OK|Internal Server Error|Bad Request|Forbidden|Unauthorized)$/i;

/**
 * In every version the reason phrase is the first line of the error text; since 8.4 the body contains the whole text.
 * Uses the body if it starts with the reason phrase or if a reverse proxy replaced the phrase.
 */
export function readErrorMessage(response: ErrorResponse): string {
  const reason = response.reason.trim();
  const body = asObject(parseJson(response.body));
  const message = (asText(body['message']) ?? '').trim();
  const whole = message.startsWith(reason) || GENERIC_REASON_PHRASE.test(reason) ? message : reason;
  const text = (whole === '' ? reason : whole).replace(/\s*\n\s*/g, '; ');
  return text === '' ? `HTTP status ${response.status} without an error text` : text;
}

/** Returns the `errors` of a "Parameter verification failed" response as `name: text`. */
function readParameterErrors(response: ErrorResponse): readonly string[] {
  const errors = asObject(asObject(parseJson(response.body))['errors']);
  return Object.entries(errors).map(
    ([name, text]) => `${name}: ${(asText(text) ?? '').trim().replace(/\s*\n\s*/g, '; ')}`,
  );
}

export function translateErrorResponse(
  response: ErrorResponse,
  context: ErrorContext,
): PvescalerError {
  const parameters = readParameterErrors(response);
  const text = redactSecrets(
    [readErrorMessage(response), ...parameters].join('; '),
    context.secrets,
  );
  const facts = { ...context.facts, status: response.status, requestSent: response.status !== 595 };
  return createError(response.status, text, { operation: context.operation, facts });
}

/**
 * Translates the exit status of a failed task. A task also finds no VM if the VM has moved to another host, so this never
 * returns VM_NOT_FOUND: only the list of the whole cluster proves that a VM is gone.
 */
export function translateTaskFailure(text: string, context: ErrorContext): PvescalerError {
  const clean = redactSecrets(text.trim(), context.secrets);
  const known = matchKnownText(clean, context);
  const message = `${context.operation}: ${clean}`;
  if (known === undefined) return new TaskFailed('TASK_FAILED', message, { facts: context.facts });
  if (known.code !== 'VM_NOT_FOUND') return known;
  return new Conflict('VM_CHANGED', message, { facts: context.facts });
}

type OperationContext = Pick<ErrorContext, 'operation' | 'facts'>;

function createError(status: number, text: string, context: OperationContext): PvescalerError {
  const known =
    status >= 500 || status === 400 || status === 403 ? matchKnownText(text, context) : undefined;
  if (known !== undefined) return known;
  return (ERROR_BY_STATUS[status] ?? errorByStatusRange(status))(`${context.operation}: ${text}`, {
    facts: context.facts,
  });
}

function matchKnownText(text: string, context: OperationContext): PvescalerError | undefined {
  for (const known of KNOWN_ERROR_TEXTS) {
    const match = known.pattern.exec(text);
    if (match !== null)
      return known.createError(`${context.operation}: ${text}`, { facts: context.facts }, match);
  }
  return undefined;
}

type CreateError = (message: string, details: ErrorDetails) => PvescalerError;

const hostUnreachable: CreateError = (message, details) =>
  new Unreachable('PVE_HOST_UNREACHABLE', message, details);

const ERROR_BY_STATUS: Readonly<Record<number, CreateError>> = {
  301: redirected,
  308: redirected,
  400: (message, details) => new InvalidConfig('PARAMETER_REFUSED', message, details),
  401: (message, details) => new Unauthorized('CREDENTIALS_REFUSED', message, details),
  403: (message, details) => new Unauthorized('PERMISSION_MISSING', message, details),
  501: (message, details) => new Bug('UNEXPECTED_ANSWER', message, details),
  502: (message, details) => new Unreachable('PVE_UNREACHABLE', message, details),
  503: (message, details) => new Unreachable('PVE_UNREACHABLE', message, details),
  504: (message, details) => new TimedOut('REQUEST_TIMED_OUT', message, details),
  // 595: the endpoint could not connect to the target host, which has received nothing.
  595: hostUnreachable,
  // 596: the target host did not respond in time. 597 and 598: its response was incomplete. 599: a connection was reused
  // wrongly. In all of them the request may have been executed.
  596: (message, details) => new TimedOut('REQUEST_TIMED_OUT', message, details),
  597: hostUnreachable,
  598: hostUnreachable,
  599: hostUnreachable,
};

function errorByStatusRange(status: number): CreateError {
  if (status >= 500) return (message, details) => new TaskFailed('TASK_FAILED', message, details);
  return (message, details) => new Bug('UNEXPECTED_ANSWER', message, details);
}

function redirected(message: string, details: ErrorDetails): PvescalerError {
  return new InvalidConfig('CONFIG_INVALID', message, {
    ...details,
    hint: 'The endpoint responds with a redirect. Configure it with https:// and the port of the Proxmox API (8006 by default).',
  });
}

export function proxmoxTooOld(feature: string, version: string): UnsupportedVersion {
  return new UnsupportedVersion(
    'PVE_TOO_OLD',
    `${feature}; the region runs Proxmox VE ${version}`,
    { facts: { version } },
  );
}

export function redactSecrets(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret.length >= 4) clean = clean.replaceAll(secret, '***');
  }
  return clean;
}
