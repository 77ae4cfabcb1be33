// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import {
  type BootstrapToken,
  type BootstrapTokenOrder,
  type ClusterCallOptions,
  LONGEST_BOOTSTRAP_TOKEN_MS,
} from '../ports/cluster.ts';
import { InvalidRequest } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import { type Api, FIELD_MANAGER } from './api.ts';
import { translateStatus } from './status.ts';

/** Where the API server looks for them, and nowhere else. */
const PATH = '/api/v1/namespaces/kube-system/secrets';
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';
/** Two billion ids: even one that is taken already is rare. */
const ATTEMPTS = 5;
/** The API server accepts no other group in a token. */
const GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;

/**
 * The admission policy counts from the server's clock. Ours may be ahead of it by this much before a token that shall
 * last as long as any may is refused.
 */
const CLOCKS_APART_MS = 5 * 60_000;

interface Parts {
  readonly api: Api;
  readonly clock: Clock;
  readonly random: Random;
}

/** Makes one; it can only be created, never read again or changed. No error here tells the secret part. */
export async function createBootstrapToken(
  { api, clock, random }: Parts,
  order: BootstrapTokenOrder,
  { signal }: ClusterCallOptions = {},
): Promise<BootstrapToken> {
  check(order);
  const lifetimeMs = Math.min(order.lifetimeMs, LONGEST_BOOTSTRAP_TOKEN_MS - CLOCKS_APART_MS);
  for (let attempt = 1; ; attempt += 1) {
    const id = letters(random, 6);
    const secret = letters(random, 16);
    // Written in whole seconds; never later than promised.
    const expiresAt = Math.floor((clock.now() + lifetimeMs) / 1_000) * 1_000;
    const doing = `create bootstrap token ${id}`;
    const answer = await api.ask({
      method: 'POST',
      path: PATH,
      query: { fieldManager: FIELD_MANAGER },
      body: secretObject({ id, secret, expiresAt }, order),
      doing,
      signal,
    });
    if (answer.ok) return { token: `${id}.${secret}`, expiresAt };
    if (answer.status.code !== 409 || attempt >= ATTEMPTS) {
      throw translateStatus(answer.status, doing);
    }
  }
}

function check({ lifetimeMs, groups, usages }: BootstrapTokenOrder): void {
  // Below a second it would be over before it is written.
  if (!(lifetimeMs >= 1_000 && lifetimeMs <= LONGEST_BOOTSTRAP_TOKEN_MS)) {
    throw new InvalidRequest('REQUEST_INVALID', 'a bootstrap token lasts a second to an hour');
  }
  const wrong = groups.find((group) => !GROUP.test(group));
  if (wrong !== undefined) {
    throw new InvalidRequest('REQUEST_INVALID', `'${wrong}' is no group for a bootstrap token`);
  }
  if (usages.length === 0) {
    throw new InvalidRequest('REQUEST_INVALID', 'a bootstrap token without usage is of no use');
  }
}

function secretObject(
  token: { readonly id: string; readonly secret: string; readonly expiresAt: number },
  { description, groups, usages }: BootstrapTokenOrder,
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
    metadata: { name: `bootstrap-token-${token.id}`, namespace: 'kube-system' },
    type: 'bootstrap.kubernetes.io/token',
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    ),
  };
}

function letters(random: Random, count: number): string {
  return Array.from({ length: count }, () => LETTERS[random.integer(LETTERS.length)]).join('');
}
