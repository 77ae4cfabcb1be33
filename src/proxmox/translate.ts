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
import { parsed, recordOf, textOf } from './json.ts';
import { KNOWN_TEXTS } from './known-texts.ts';

export type Facts = Readonly<Record<string, string | number | boolean>>;

export interface ForeignAnswer {
  readonly status: number;
  readonly reason: string;
  readonly body: string;
}

export interface Context {
  /** `create VM 160 on pve1`: opens the message. */
  readonly doing: string;
  readonly facts: Facts;
  /** Texts that must not appear in a message, should Proxmox echo them. */
  readonly secrets: readonly string[];
}

/** The phrases of servers in between, which say nothing beyond the status. */
const GENERIC_REASON = /^(|OK|Internal Server Error|Bad Request|Forbidden|Unauthorized)$/i;

/**
 * The first line of an error's text is the reason phrase, in every version; since 8.4 the body has the whole
 * of it. The body counts where it agrees with the phrase, or where the phrase was lost on the way.
 */
export function messageOf(answer: ForeignAnswer): string {
  const reason = answer.reason.trim();
  const body = recordOf(parsed(answer.body));
  const message = (textOf(body['message']) ?? '').trim();
  const whole = message.startsWith(reason) || GENERIC_REASON.test(reason) ? message : reason;
  const text = (whole === '' ? reason : whole).replace(/\s*\n\s*/g, '; ');
  return text === '' ? `status ${answer.status} without a text` : text;
}

/** The `errors` of a refused parameter list, as `name: text`. */
function refusedParameters(answer: ForeignAnswer): readonly string[] {
  const errors = recordOf(recordOf(parsed(answer.body))['errors']);
  return Object.entries(errors).map(
    ([name, text]) => `${name}: ${(textOf(text) ?? '').trim().replace(/\s*\n\s*/g, '; ')}`,
  );
}

export function translateAnswer(answer: ForeignAnswer, context: Context): PvescalerError {
  const parameters = refusedParameters(answer);
  const text = redacted([messageOf(answer), ...parameters].join('; '), context.secrets);
  const facts = { ...context.facts, status: answer.status, requestSent: answer.status !== 595 };
  return raise(answer.status, text, { doing: context.doing, facts });
}

/**
 * The exit status of a task that failed. A task finds no VM also when it was started at a host that the VM
 * has left: only a look at the region tells that it is gone, so nothing here says so.
 */
export function translateTaskFailure(text: string, context: Context): PvescalerError {
  const clean = redacted(text.trim(), context.secrets);
  const place = { doing: context.doing, facts: context.facts };
  const known = byText(clean, place);
  const message = `${context.doing}: ${clean}`;
  if (known === undefined) return new TaskFailed('TASK_FAILED', message, { facts: context.facts });
  if (known.code !== 'VM_NOT_FOUND') return known;
  return new Conflict('VM_CHANGED', message, { facts: context.facts });
}

interface Place {
  readonly doing: string;
  readonly facts: Facts;
}

function raise(status: number, text: string, place: Place): PvescalerError {
  const known = status >= 500 || status === 400 || status === 403 ? byText(text, place) : undefined;
  if (known !== undefined) return known;
  return (BY_STATUS[status] ?? byStatusRange(status))(`${place.doing}: ${text}`, {
    facts: place.facts,
  });
}

function byText(text: string, place: Place): PvescalerError | undefined {
  for (const known of KNOWN_TEXTS) {
    const match = known.pattern.exec(text);
    if (match !== null) return known.make(`${place.doing}: ${text}`, { facts: place.facts }, match);
  }
  return undefined;
}

type Make = (message: string, details: ErrorDetails) => PvescalerError;

const hostUnreachable: Make = (message, details) =>
  new Unreachable('PVE_HOST_UNREACHABLE', message, details);

const BY_STATUS: Readonly<Record<number, Make>> = {
  301: notTls,
  308: notTls,
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

function byStatusRange(status: number): Make {
  if (status >= 500) return (message, details) => new TaskFailed('TASK_FAILED', message, details);
  return (message, details) => new Bug('UNEXPECTED_ANSWER', message, details);
}

function notTls(message: string, details: ErrorDetails): PvescalerError {
  return new InvalidConfig('CONFIG_INVALID', message, {
    ...details,
    hint: 'The endpoint answers with a redirect: name it with https and its own port.',
  });
}

export function tooOld(feature: string, version: string): UnsupportedVersion {
  return new UnsupportedVersion(
    'PVE_TOO_OLD',
    `${feature}, and the region runs Proxmox VE ${version}`,
    { facts: { version } },
  );
}

export function redacted(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret.length >= 4) clean = clean.replaceAll(secret, '***');
  }
  return clean;
}
