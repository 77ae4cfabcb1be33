// SPDX-License-Identifier: Apache-2.0
// Log-ins: tokens, tickets with their age, CSRF tokens. Tickets are signed, not remembered, so they cost no
// memory; the signing key is drawn once from the Random port.
import { createHmac } from 'node:crypto';
import { ApiError } from '../api-error.ts';
import type { User } from '../world/model.ts';
import type { World } from '../world/world.ts';

const TICKET_LIFETIME_S = 2 * 3600;
/** A clock that is ahead on another host is forgiven this much. */
const TICKET_AHEAD_S = 300;

export interface Caller {
  readonly who: string;
  readonly isToken: boolean;
}

function unauthorized(message: string): ApiError {
  return new ApiError(401, `${message}\n`);
}

export class Sessions {
  readonly #world: World;
  readonly #key: Uint8Array;

  constructor(world: World) {
    this.#world = world;
    this.#key = world.random.bytes(32);
  }

  /** `USER@REALM!TOKENID=SECRET`. 9.x does not tell why it refuses. */
  byToken(text: string): Caller {
    const match = /^([^\s!]+)!([^=]+)=(.+)$/.exec(text);
    const [, userId = '', tokenId = '', secret = ''] = match ?? [];
    if (match === null) throw this.#refusal('no tokenid specified');
    const user = this.#enabled(userId);
    const token = user.tokens.get(tokenId);
    if (token === undefined) throw this.#refusal(`no such token '${tokenId}' for user '${userId}'`);
    if (token.expire > 0 && token.expire < this.#world.seconds()) {
      throw this.#refusal(`token '${tokenId}' access expired`);
    }
    if (token.secret !== secret) throw this.#refusal('invalid token value!');
    return { who: `${userId}!${tokenId}`, isToken: true };
  }

  byTicket(ticket: string): Caller {
    const user = this.#ticketUser(ticket);
    if (user === undefined) throw this.#refusal('permission denied - invalid PVE ticket');
    this.#enabled(user);
    return { who: user, isToken: false };
  }

  /** Password or an unexpired ticket of the same user. Undefined = wrong. */
  login(userId: string, password: string): User | undefined {
    const user = this.#world.users.get(userId);
    if (user === undefined || !this.#isEnabled(user)) return undefined;
    if (this.#ticketUser(password) === userId) return user;
    return user.password !== undefined && user.password === password ? user : undefined;
  }

  ticket(userId: string): string {
    const stamp = this.#world.seconds().toString(16).toUpperCase().padStart(8, '0');
    const plain = `PVE:${userId}:${stamp}`;
    return `${plain}::${this.#sign(plain)}`;
  }

  csrfToken(userId: string): string {
    const stamp = this.#world.seconds().toString(16).toUpperCase().padStart(8, '0');
    return `${stamp}:${this.#sign(`csrf:${stamp}:${userId}`)}`;
  }

  checkCsrf(userId: string, token: string | undefined): void {
    const [stamp = '', signature = ''] = (token ?? '').split(/:(.*)/s);
    const age = this.#world.seconds() - Number.parseInt(stamp, 16);
    const good = signature === this.#sign(`csrf:${stamp}:${userId}`);
    if (good && age > -TICKET_AHEAD_S && age < TICKET_LIFETIME_S) return;
    throw unauthorized('Permission denied - invalid csrf token');
  }

  #ticketUser(ticket: string): string | undefined {
    const match = /^(PVE:([^:]+):([0-9A-F]{8}))::(.+)$/.exec(ticket);
    const [, plain = '', user = '', stamp = '', signature = ''] = match ?? [];
    if (match === null || signature !== this.#sign(plain)) return undefined;
    const age = this.#world.seconds() - Number.parseInt(stamp, 16);
    return age > -TICKET_AHEAD_S && age < TICKET_LIFETIME_S ? user : undefined;
  }

  #enabled(userId: string): User {
    const user = this.#world.users.get(userId);
    if (user === undefined) throw this.#refusal(`no such user ('${userId}')`);
    if (!user.enabled) throw this.#refusal(`user '${userId}' is disabled`);
    if (!this.#isEnabled(user)) throw this.#refusal(`user '${userId}' access expired`);
    return user;
  }

  #isEnabled(user: User): boolean {
    return user.enabled && (user.expire === 0 || user.expire > this.#world.seconds());
  }

  #refusal(cause: string): ApiError {
    return unauthorized(this.#world.version === '8.4' ? cause : 'Authentication failed!');
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64');
  }
}
