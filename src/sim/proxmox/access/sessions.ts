// SPDX-License-Identifier: Apache-2.0
// Authentication: API tokens, tickets with their age, CSRF tokens. Tickets are signed, not stored, so they use
// no memory; the signing key comes from the Random port once.
import { createHmac } from 'node:crypto';
import { ApiError } from '../api-error.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { User } from '../state/model.ts';

const TICKET_LIFETIME_S = 2 * 3600;
/** Tolerated clock skew between hosts. */
const MAX_CLOCK_SKEW_S = 300;

export interface Caller {
  readonly authUser: string;
  readonly isToken: boolean;
}

function unauthorized(message: string): ApiError {
  return new ApiError(401, `${message}\n`);
}

export class Sessions {
  readonly #state: ClusterState;
  readonly #key: Uint8Array;

  constructor(state: ClusterState) {
    this.#state = state;
    this.#key = state.random.bytes(32);
  }

  /** `USER@REALM!TOKENID=SECRET`. 9.x does not report the cause of a refusal. */
  authenticateToken(text: string): Caller {
    const match = /^([^\s!]+)!([^=]+)=(.+)$/.exec(text);
    const [, userId = '', tokenId = '', secret = ''] = match ?? [];
    if (match === null) throw this.#authenticationError('no tokenid specified');
    const user = this.#requireEnabledUser(userId);
    const token = user.tokens.get(tokenId);
    if (token === undefined)
      throw this.#authenticationError(`no such token '${tokenId}' for user '${userId}'`);
    if (token.expire > 0 && token.expire < this.#state.nowSeconds()) {
      throw this.#authenticationError(`token '${tokenId}' access expired`);
    }
    if (token.secret !== secret) throw this.#authenticationError('invalid token value!');
    return { authUser: `${userId}!${tokenId}`, isToken: true };
  }

  authenticateTicket(ticket: string): Caller {
    const user = this.#ticketUser(ticket);
    if (user === undefined)
      throw this.#authenticationError('permission denied - invalid PVE ticket');
    this.#requireEnabledUser(user);
    return { authUser: user, isToken: false };
  }

  /** Accepts the password or an unexpired ticket of the same user. Undefined = refused. */
  login(userId: string, password: string): User | undefined {
    const user = this.#state.users.get(userId);
    if (user === undefined || !this.#isEnabled(user)) return undefined;
    if (this.#ticketUser(password) === userId) return user;
    return user.password !== undefined && user.password === password ? user : undefined;
  }

  createTicket(userId: string): string {
    const stamp = this.#state.nowSeconds().toString(16).toUpperCase().padStart(8, '0');
    const plain = `PVE:${userId}:${stamp}`;
    return `${plain}::${this.#sign(plain)}`;
  }

  createCsrfToken(userId: string): string {
    const stamp = this.#state.nowSeconds().toString(16).toUpperCase().padStart(8, '0');
    return `${stamp}:${this.#sign(`csrf:${stamp}:${userId}`)}`;
  }

  checkCsrf(userId: string, token: string | undefined): void {
    const [stamp = '', signature = ''] = (token ?? '').split(/:(.*)/s);
    const age = this.#state.nowSeconds() - Number.parseInt(stamp, 16);
    const good = signature === this.#sign(`csrf:${stamp}:${userId}`);
    if (good && age > -MAX_CLOCK_SKEW_S && age < TICKET_LIFETIME_S) return;
    throw unauthorized('Permission denied - invalid csrf token');
  }

  #ticketUser(ticket: string): string | undefined {
    const match = /^(PVE:([^:]+):([0-9A-F]{8}))::(.+)$/.exec(ticket);
    const [, plain = '', user = '', stamp = '', signature = ''] = match ?? [];
    if (match === null || signature !== this.#sign(plain)) return undefined;
    const age = this.#state.nowSeconds() - Number.parseInt(stamp, 16);
    return age > -MAX_CLOCK_SKEW_S && age < TICKET_LIFETIME_S ? user : undefined;
  }

  #requireEnabledUser(userId: string): User {
    const user = this.#state.users.get(userId);
    if (user === undefined) throw this.#authenticationError(`no such user ('${userId}')`);
    if (!user.enabled) throw this.#authenticationError(`user '${userId}' is disabled`);
    if (!this.#isEnabled(user)) throw this.#authenticationError(`user '${userId}' access expired`);
    return user;
  }

  #isEnabled(user: User): boolean {
    return user.enabled && (user.expire === 0 || user.expire > this.#state.nowSeconds());
  }

  #authenticationError(cause: string): ApiError {
    return unauthorized(this.#state.version === '8.4' ? cause : 'Authentication failed!');
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64');
  }
}
