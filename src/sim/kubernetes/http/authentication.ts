// SPDX-License-Identifier: Apache-2.0
// The user of a request, from a token or a client certificate; without both the user is anonymous.
import { X509Certificate } from 'node:crypto';
import { ApiError } from '../storage/api-error.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import { objectField, type SimObject, textField } from '../storage/objects.ts';
import { SECRETS } from '../storage/resources.ts';

export interface User {
  readonly username: string;
  readonly groups: readonly string[];
}

export const BOOTSTRAPPERS = 'system:bootstrappers';
const ADMINISTRATOR: User = { username: 'kubernetes-admin', groups: ['system:masters'] };
const ANONYMOUS: User = { username: 'system:anonymous', groups: ['system:unauthenticated'] };
const BOOTSTRAP_TOKEN = /^Bearer ([a-z0-9]{6})\.([a-z0-9]{16})$/;
const PUBLIC_PATHS = [
  '/version',
  '/readyz',
  '/livez',
  '/healthz',
  '/cacerts',
  '/api/v1/namespaces/kube-public/configmaps/cluster-info',
];

/** The user that a client certificate names, for connections without sockets. */
export function userOfCertificate(certPem: string): User {
  const lines = new X509Certificate(certPem).subject.split('\n');
  const texts = (key: string) =>
    lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1));
  return { username: texts('CN')[0] ?? '', groups: texts('O') };
}

export interface AuthenticationOptions {
  readonly store: ObjectStore;
  /** Absent: every user without a bootstrap token is an administrator. */
  readonly adminToken?: string;
  /** The verified client certificate of the connection. */
  readonly certificateUser?: User;
  readonly now: number;
}

/** Throws 401 for a wrong or expired token. */
export function authenticate(authorization: string, options: AuthenticationOptions): User {
  const { adminToken, certificateUser, store, now } = options;
  const [, id = '', secret = ''] = BOOTSTRAP_TOKEN.exec(authorization) ?? [];
  if (id !== '') return authenticateBootstrapToken(store, { id, secret, now });
  if (adminToken === undefined || authorization === `Bearer ${adminToken}`) return ADMINISTRATOR;
  if (authorization !== '') throw new ApiError(401, 'Unauthorized', 'Unauthorized');
  return certificateUser ?? ANONYMOUS;
}

/** Throws 403 when the user may not send the request. Administrators and nodes may do everything. */
export function authorize(user: User, method: string, path: string): void {
  if (user !== ANONYMOUS && !user.groups.includes(BOOTSTRAPPERS)) return;
  if (method === 'GET' && (PUBLIC_PATHS.includes(path) || path.startsWith('/v1-'))) return;
  const isJoining = /^\/apis\/certificates\.k8s\.io\/|^\/api\/v1\/nodes\/|^\/apis?$/.test(path);
  if (user !== ANONYMOUS && isJoining) return;
  const message = `forbidden: User "${user.username}" cannot ${method.toLowerCase()} path "${path}"`;
  throw new ApiError(403, 'Forbidden', message);
}

interface PresentedToken {
  readonly id: string;
  readonly secret: string;
  readonly now: number;
}

function authenticateBootstrapToken(store: ObjectStore, { id, secret, now }: PresentedToken): User {
  const name = `bootstrap-token-${id}`;
  const found = store.find({ resource: SECRETS, namespace: 'kube-system', name });
  const token = found && readBootstrapToken(found);
  const isValid =
    token !== undefined &&
    token.secret === secret &&
    token.expiresAt > now &&
    token.usages.includes('authentication');
  if (!isValid) throw new ApiError(401, 'Unauthorized', 'Unauthorized');
  return { username: `system:bootstrap:${id}`, groups: [BOOTSTRAPPERS, ...token.groups] };
}

export interface StoredBootstrapToken {
  readonly id: string;
  readonly secret: string;
  /** Wall clock; infinite without an expiration. */
  readonly expiresAt: number;
  readonly groups: readonly string[];
  readonly usages: readonly string[];
}

/** Undefined for a Secret of another type. */
export function readBootstrapToken(secret: SimObject): StoredBootstrapToken | undefined {
  if (secret['type'] !== 'bootstrap.kubernetes.io/token') return undefined;
  const data = objectField(secret, 'data');
  const read = (key: string) => Buffer.from(textField(data, key), 'base64').toString('utf8');
  const expiration = read('expiration');
  return {
    id: read('token-id'),
    secret: read('token-secret'),
    expiresAt: expiration === '' ? Number.POSITIVE_INFINITY : Date.parse(expiration),
    groups: read('auth-extra-groups').split(',').filter(Boolean),
    usages: ['authentication', 'signing'].filter(
      (usage) => read(`usage-bootstrap-${usage}`) === 'true',
    ),
  };
}
