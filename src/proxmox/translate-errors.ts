// SPDX-License-Identifier: Apache-2.0
// The one place where Proxmox's statuses and texts become our errors. It has no "not found" and no
// "conflict" status: nearly everything is 500 with free text, so the text decides, from one table, for
// answers and for the exit status of tasks alike.
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
import { asObject, asText, parseJson } from './json.ts';
import { KNOWN_ERROR_TEXTS } from './known-error-texts.ts';

export type Facts = Readonly<Record<string, string | number | boolean>>;

export interface ErrorResponse {
  readonly status: number;
  readonly reason: string;
  readonly body: string;
}

export interface ErrorContext {
  /** `create VM 160 on pve1`: opens the message. */
  readonly operation: string;
  readonly facts: Facts;
  /** Texts that must not appear in a message, should Proxmox echo them. */
  readonly secrets: readonly string[];
}

/** The phrases of servers in between, which say nothing beyond the status. */
const GENERIC_REASON_PHRASE = /^(|OK|Internal Server Error|Bad Request|Forbidden|Unauthorized)$/i;

/**
 * The first line of an error's text is the reason phrase, in every version; since 8.4 the body has the whole
 * of it. The body counts where it agrees with the phrase, or where the phrase was lost on the way.
 */
export function readErrorMessage(response: ErrorResponse): string {
  const reason = response.reason.trim();
  const body = asObject(parseJson(response.body));
  const message = (asText(body['message']) ?? '').trim();
  const whole = message.startsWith(reason) || GENERIC_REASON_PHRASE.test(reason) ? message : reason;
  const text = (whole === '' ? reason : whole).replace(/\s*\n\s*/g, '; ');
  return text === '' ? `status ${response.status} without a text` : text;
}

/** The `errors` of a refused parameter list, as `name: text`. */
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
 * The exit status of a task that failed. A task finds no VM also when it was started at a host that the VM
 * has left: only a look at the region tells that it is gone, so nothing here says so.
 */
export function translateTaskFailure(text: string, context: ErrorContext): PvescalerError {
  const clean = redactSecrets(text.trim(), context.secrets);
  const place = { operation: context.operation, facts: context.facts };
  const known = matchKnownText(clean, place);
  const message = `${context.operation}: ${clean}`;
  if (known === undefined) return new TaskFailed('TASK_FAILED', message, { facts: context.facts });
  if (known.code !== 'VM_NOT_FOUND') return known;
  return new Conflict('VM_CHANGED', message, { facts: context.facts });
}

interface Operation {
  readonly operation: string;
  readonly facts: Facts;
}

function createError(status: number, text: string, place: Operation): PvescalerError {
  const known =
    status >= 500 || status === 400 || status === 403 ? matchKnownText(text, place) : undefined;
  if (known !== undefined) return known;
  return (ERROR_BY_STATUS[status] ?? errorByStatusRange(status))(`${place.operation}: ${text}`, {
    facts: place.facts,
  });
}

function matchKnownText(text: string, place: Operation): PvescalerError | undefined {
  for (const known of KNOWN_ERROR_TEXTS) {
    const match = known.pattern.exec(text);
    if (match !== null)
      return known.createError(`${place.operation}: ${text}`, { facts: place.facts }, match);
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
  // 595: the host behind the one that was asked could not be connected to; it has received nothing.
  595: hostUnreachable,
  // 596: it was connected to, and did not answer in time. 597 and 598: its answer broke off. 599: a connection
  // was reused wrongly. In all of them the call may have been carried out.
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
    hint: 'The endpoint answers with a redirect: name it with https and its own port.',
  });
}

export function proxmoxTooOld(feature: string, version: string): UnsupportedVersion {
  return new UnsupportedVersion(
    'PVE_TOO_OLD',
    `${feature}, and the region runs Proxmox VE ${version}`,
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
