// SPDX-License-Identifier: Apache-2.0
import { createHash } from 'node:crypto';
import type { Clock } from '../ports/clock.ts';
import {
  type BootstrapToken,
  type BootstrapTokenRequest,
  type ClusterCallOptions,
  MAX_BOOTSTRAP_TOKEN_MS,
} from '../ports/cluster.ts';
import { InvalidRequest } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import { type ApiClient, FIELD_MANAGER } from './api-client.ts';
import { translateStatus } from './status.ts';

/** The API server reads bootstrap tokens from this namespace only. */
const SECRETS_PATH = '/api/v1/namespaces/kube-system/secrets';
const TOKEN_ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';
/** Tokens of one machine: another one is created after a crash. There are two billion ids, so a collision is rare. */
const MAX_TOKENS = 5;
/** The admission policy lets us delete Secrets with this label, and no others. */
export const MANAGED_BY_LABEL = { 'app.kubernetes.io/managed-by': 'pvescaler' } as const;
const MACHINE_LABEL = 'pvescaler.dev/machine';
/** The API server accepts no other group in a token. */
const BOOTSTRAP_GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;

/**
 * The admission policy compares expiry with the API server's clock. Tokens are shortened by this much, so that it does
 * not refuse one of maximum lifetime when our clock is ahead.
 */
const MAX_CLOCK_SKEW_MS = 5 * 60_000;

interface TokenDependencies {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Creates a token Secret, which we may neither read nor change afterwards. Its id follows from the machine's, so that any
 * later process can delete it without a list of Secrets. No error here contains the secret part.
 */
export async function createBootstrapToken(
  { api, clock, random }: TokenDependencies,
  request: BootstrapTokenRequest,
  { signal }: ClusterCallOptions = {},
): Promise<BootstrapToken> {
  checkRequest(request);
  const lifetimeMs = Math.min(request.lifetimeMs, MAX_BOOTSTRAP_TOKEN_MS - MAX_CLOCK_SKEW_MS);
  for (let index = 0; ; index += 1) {
    const id = tokenId(request.machine, index);
    const secret = randomText(random, 16);
    // The Secret stores whole seconds; round down, so that the token never outlives the returned time.
    const expiresAt = Math.floor((clock.now() + lifetimeMs) / 1_000) * 1_000;
    const operation = `create bootstrap token ${id}`;
    const result = await api.request({
      method: 'POST',
      path: SECRETS_PATH,
      query: { fieldManager: FIELD_MANAGER },
      body: buildSecret({ id, secret, expiresAt }, request),
      operation,
      signal,
    });
    if (result.ok) return { token: `${id}.${secret}`, expiresAt };
    if (result.status.code !== 409 || index + 1 >= MAX_TOKENS) {
      throw translateStatus(result.status, operation);
    }
  }
}

export async function deleteBootstrapTokens(
  api: ApiClient,
  machine: string,
  { signal }: ClusterCallOptions = {},
): Promise<void> {
  for (let index = 0; index < MAX_TOKENS; index += 1) {
    const id = tokenId(machine, index);
    const operation = `delete bootstrap token ${id}`;
    const path = `${SECRETS_PATH}/bootstrap-token-${id}`;
    const result = await api.request({ method: 'DELETE', path, operation, signal });
    if (result.ok) continue;
    // Gone, or the right is missing or the Secret is not ours.
    if (result.status.code === 404 || result.status.code === 403) return;
    throw translateStatus(result.status, operation);
  }
}

/** The id is no secret: it is part of the Secret's name. */
function tokenId(machine: string, index: number): string {
  const sum = createHash('sha256').update(`${machine} ${index}`).digest();
  return Array.from(
    sum.subarray(0, 6),
    (byte) => TOKEN_ALPHABET[byte % TOKEN_ALPHABET.length],
  ).join('');
}

function checkRequest({ lifetimeMs, groups, usages }: BootstrapTokenRequest): void {
  // A shorter lifetime rounds down to an expiry in the past.
  if (!(lifetimeMs >= 1_000 && lifetimeMs <= MAX_BOOTSTRAP_TOKEN_MS)) {
    throw new InvalidRequest(
      'REQUEST_INVALID',
      'the lifetime of a bootstrap token must be between 1 second and 1 hour',
    );
  }
  const invalid = groups.find((group) => !BOOTSTRAP_GROUP.test(group));
  if (invalid !== undefined) {
    throw new InvalidRequest(
      'REQUEST_INVALID',
      `'${invalid}' is not a valid group for a bootstrap token: it must begin with system:bootstrappers:`,
    );
  }
  if (usages.length === 0) {
    throw new InvalidRequest('REQUEST_INVALID', 'a bootstrap token needs at least one usage');
  }
}

function buildSecret(
  token: { readonly id: string; readonly secret: string; readonly expiresAt: number },
  { machine, description, groups, usages }: BootstrapTokenRequest,
): object {
  const data: Record<string, string> = {
    'token-id': token.id,
    'token-secret': token.secret,
    expiration: new Date(token.expiresAt).toISOString().replace('.000Z', 'Z'),
    description,
    ...(groups.length > 0 && { 'auth-extra-groups': groups.join(',') }),
  };
  for (const usage of usages) data[`usage-bootstrap-${usage}`] = 'true';
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: `bootstrap-token-${token.id}`,
      namespace: 'kube-system',
      labels: { ...MANAGED_BY_LABEL, [MACHINE_LABEL]: machine },
    },
    type: 'bootstrap.kubernetes.io/token',
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    ),
  };
}

function randomText(random: Random, count: number): string {
  return Array.from(
    { length: count },
    () => TOKEN_ALPHABET[random.integer(TOKEN_ALPHABET.length)],
  ).join('');
}
