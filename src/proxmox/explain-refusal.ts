// SPDX-License-Identifier: Apache-2.0
// Proxmox refuses some requests without naming the privilege; what the credentials have is read from it.
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

interface PermissionsRequest {
  readonly method: 'GET';
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly operation: string;
  readonly signal: AbortSignal;
}

interface RefusedRequest {
  readonly operation: string;
  readonly signal: AbortSignal;
  readonly needs: readonly NeededPrivilege[];
  readonly requestData: (request: PermissionsRequest) => Promise<unknown>;
}

/** Names the privileges that the credentials lack; all that are needed if those cannot be read. */
export async function explainRefusal(
  refusal: PvescalerError,
  request: RefusedRequest,
): Promise<PvescalerError> {
  const { needs, operation } = request;
  const missing = await missingOf(request).catch(() =>
    refusal.code === 'PERMISSION_MISSING' ? needs : [],
  );
  const [first] = missing;
  if (first === undefined) return refusal;
  const names = missing.map(({ privilege, path }) => `${privilege} on ${path}`).join(' and ');
  return new Unauthorized('PERMISSION_MISSING', `${operation}: the credentials lack ${names}`, {
    cause: refusal,
    facts: { ...refusal.facts, ...first },
  });
}

async function missingOf(request: RefusedRequest): Promise<readonly NeededPrivilege[]> {
  const granted = await Promise.all(request.needs.map((need) => isGranted(need, request)));
  return request.needs.filter((_, index) => granted[index] !== true);
}

async function isGranted(
  { privilege, path }: NeededPrivilege,
  { requestData, signal }: RefusedRequest,
): Promise<boolean> {
  const data = await requestData({
    method: 'GET',
    path: '/access/permissions',
    query: { path },
    operation: `read the permissions on ${path}`,
    signal,
  });
  return Object.hasOwn(asObject(asObject(data)[path]), privilege);
}
