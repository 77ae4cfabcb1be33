// SPDX-License-Identifier: Apache-2.0
// Names the privilege that a refused request lacks, where Proxmox does not.
import { PvescalerError, Unauthorized } from '../ports/errors.ts';
import { asObject } from './wire-values.ts';

export interface NeededPrivilege {
  readonly privilege: string;
  readonly path: string;
}

/**
 * A refusal that names no privilege. An upload without the privilege is answered with 400 `bad request` when its
 * connection was used before.
 */
export function isUnexplainedRefusal(error: unknown): error is PvescalerError {
  if (!(error instanceof PvescalerError)) return false;
  if (error.code === 'PERMISSION_MISSING') return error.facts['privilege'] === undefined;
  return error.facts['status'] === 400 && /: bad request$/i.test(error.message);
}

interface PermissionReader {
  requestData(request: {
    readonly method: 'GET';
    readonly path: string;
    readonly query: Readonly<Record<string, string>>;
    readonly operation: string;
    readonly signal: AbortSignal;
  }): Promise<unknown>;
}

interface RefusedRequest {
  readonly error: PvescalerError;
  readonly operation: string;
  readonly needs: readonly NeededPrivilege[];
  readonly signal: AbortSignal;
}

/** Names the privileges that the credentials lack; all that are needed if those cannot be read. */
export async function explainRefusal(
  api: PermissionReader,
  { error, operation, needs, signal }: RefusedRequest,
): Promise<PvescalerError> {
  const missing = await findMissing(api, needs, signal).catch(() =>
    error.code === 'PERMISSION_MISSING' ? needs : [],
  );
  const [first] = missing;
  if (first === undefined) return error;
  const names = missing.map(({ privilege, path }) => `${privilege} on ${path}`).join(' and ');
  const message = `${operation}: the credentials lack ${names}`;
  const facts = { ...error.facts, ...first };
  return new Unauthorized('PERMISSION_MISSING', message, { cause: error, facts });
}

async function findMissing(
  api: PermissionReader,
  needs: readonly NeededPrivilege[],
  signal: AbortSignal,
): Promise<readonly NeededPrivilege[]> {
  const granted = await Promise.all(needs.map((need) => isGranted(api, need, signal)));
  return needs.filter((_, at) => granted[at] === false);
}

async function isGranted(
  api: PermissionReader,
  { privilege, path }: NeededPrivilege,
  signal: AbortSignal,
): Promise<boolean> {
  const data = await api.requestData({
    method: 'GET',
    path: '/access/permissions',
    query: { path },
    operation: `read the permissions on ${path}`,
    signal,
  });
  return Object.hasOwn(asObject(asObject(data)[path]), privilege);
}
