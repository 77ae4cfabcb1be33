// SPDX-License-Identifier: Apache-2.0
import { asPvescalerError } from '../ports/errors.ts';

/** Every check, in the order of the report. Scripts read these names: they are never renamed. */
export const CHECK_NAMES = [
  'secret',
  'file',
  'checksum-list',
  'endpoint',
  'tls',
  'host-key',
  'login',
  'version',
  'token',
  'region',
  'privileges',
  'hosts',
  'seed-storage',
  'vm-ids',
  'addresses',
  'clock',
  'storage',
  'space',
  'bridge',
  'vlan',
  'image',
  'template',
  'api-server',
  'kubernetes-rights',
  'state',
  'pool-objects',
  'join-endpoint',
  'join-token',
  'provider-ids',
  'cluster-autoscaler',
] as const;

export type CheckName = (typeof CHECK_NAMES)[number];

export type Outcome =
  | { readonly status: 'ok'; readonly detail: string }
  | Finding
  /** Not examined, because something that it needs failed in another check. */
  | { readonly status: 'skipped'; readonly detail: string };

interface Finding {
  readonly status: 'warning' | 'failure';
  readonly cause: string;
  /** What the operator does. Lines after the first are commands to copy. */
  readonly fix: string;
}

export interface Check {
  readonly name: CheckName;
  /** Heading of the report: `region lab`, `region lab, host pve1`. */
  readonly group: string;
  /** What is examined, if the group does not say it. */
  readonly subject?: string;
  /** May reject with any error, which is reported as a failure. */
  readonly run: (signal: AbortSignal) => Promise<Outcome>;
}

/** A check with its outcome. */
export type CheckResult = Pick<Check, 'name' | 'group' | 'subject'> & Outcome;

export function ok(detail: string): Outcome {
  return { status: 'ok', detail };
}

export function warning(cause: string, fix: string): Outcome {
  return { status: 'warning', cause, fix };
}

export function failure(cause: string, fix: string): Outcome {
  return { status: 'failure', cause, fix };
}

export function skipped(detail: string): Outcome {
  return { status: 'skipped', detail };
}

export function failureOf(error: unknown): Outcome {
  const { message, hint } = asPvescalerError(error);
  return failure(message, hint);
}
