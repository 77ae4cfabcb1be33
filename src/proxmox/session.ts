// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { PvescalerError, Unauthorized } from '../ports/errors.ts';
import { unlessAborted } from './abort.ts';
import type { Parameters } from './form.ts';
import { flagOf, recordOf, textOf } from './json.ts';

/** Secrets are functions, so that a rotated one is picked up and none lies in an object that may be printed. */
export type Credentials =
  /** `id` is `user@realm!name`. */
  | { readonly kind: 'token'; readonly id: string; secret(): string | Promise<string> }
  /** `user` is `name@realm`. */
  | { readonly kind: 'password'; readonly user: string; password(): string | Promise<string> };

export interface Session {
  /** What proves who we are, for one request. */
  headers(method: string, signal?: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** After a 401: whether there is something new to try. Refuses what `headers` gave before. */
  renew(refused: Readonly<Record<string, string>>): boolean;
  /** What must not appear in any text. */
  secrets(): readonly string[];
  /** `user@realm`, without the token's name. */
  readonly user: string;
}

/** Posts to /access/ticket and hands back its data. */
export type Login = (form: Parameters) => Promise<unknown>;

export function createSession(
  credentials: Credentials,
  options: { readonly clock: Clock; readonly login: Login },
): Session {
  return credentials.kind === 'token'
    ? new TokenSession(credentials)
    : new TicketSession(credentials, options);
}

class TokenSession implements Session {
  readonly user: string;
  readonly #credentials: Credentials & { readonly kind: 'token' };
  #secret = '';

  constructor(credentials: Credentials & { readonly kind: 'token' }) {
    this.#credentials = credentials;
    this.user = credentials.id.split('!')[0] ?? '';
  }

  async headers(): Promise<Readonly<Record<string, string>>> {
    this.#secret = await this.#credentials.secret();
    return { authorization: `PVEAPIToken=${this.#credentials.id}=${this.#secret}` };
  }

  renew(): boolean {
    return false;
  }

  secrets(): readonly string[] {
    return [this.#secret];
  }
}

interface Ticket {
  readonly ticket: string;
  readonly csrf: string;
  readonly takenAt: number;
}

/** A ticket lives two hours; renewed at half of that, a host that is slow to answer is no trouble. */
const RENEW_AFTER_MS = 60 * 60 * 1_000;

class TicketSession implements Session {
  readonly user: string;
  readonly #credentials: Credentials & { readonly kind: 'password' };
  readonly #clock: Clock;
  readonly #login: Login;
  #ticket: Ticket | undefined;
  #password = '';
  /** One login for all who wait for it. */
  #underWay: Promise<Ticket> | undefined;

  constructor(
    credentials: Credentials & { readonly kind: 'password' },
    options: { readonly clock: Clock; readonly login: Login },
  ) {
    this.#credentials = credentials;
    this.user = credentials.user;
    this.#clock = options.clock;
    this.#login = options.login;
  }

  async headers(method: string, signal?: AbortSignal): Promise<Readonly<Record<string, string>>> {
    const { ticket, csrf } = await unlessAborted(this.#current(), signal);
    const cookie = { cookie: `PVEAuthCookie=${encodeURIComponent(ticket)}` };
    return method === 'GET' ? cookie : { ...cookie, csrfpreventiontoken: csrf };
  }

  renew(refused: Readonly<Record<string, string>>): boolean {
    // Somebody else may have logged in again since that request left; then theirs is what to try.
    const current = this.#ticket;
    if (current !== undefined && refused['cookie']?.endsWith(encodeURIComponent(current.ticket))) {
      this.#ticket = undefined;
    }
    return true;
  }

  secrets(): readonly string[] {
    const { ticket, csrf } = this.#ticket ?? { ticket: '', csrf: '' };
    return [this.#password, ticket, csrf];
  }

  #current(): Promise<Ticket> {
    const held = this.#ticket;
    if (held !== undefined && this.#clock.monotonic() - held.takenAt < RENEW_AFTER_MS) {
      return Promise.resolve(held);
    }
    this.#underWay ??= this.#take(held).finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #take(held: Ticket | undefined): Promise<Ticket> {
    this.#ticket = (await this.#byTicket(held)) ?? (await this.#ask(await this.#readPassword()));
    return this.#ticket;
  }

  /** A ticket still good is exchanged for a new one without the password. */
  async #byTicket(held: Ticket | undefined): Promise<Ticket | undefined> {
    if (held === undefined) return undefined;
    try {
      return await this.#ask(held.ticket);
    } catch (error) {
      if (error instanceof PvescalerError && error.code === 'CREDENTIALS_REFUSED') return undefined;
      throw error;
    }
  }

  async #readPassword(): Promise<string> {
    this.#password = await this.#credentials.password();
    return this.#password;
  }

  async #ask(password: string): Promise<Ticket> {
    const data = recordOf(await this.#login({ username: this.user, password }));
    if (flagOf(data['NeedTFA'])) {
      throw new Unauthorized('CREDENTIALS_REFUSED', `${this.user} needs a second factor`, {
        hint: 'Use an API token: it needs none.',
      });
    }
    const ticket = textOf(data['ticket']) ?? '';
    const csrf = textOf(data['CSRFPreventionToken']) ?? '';
    return { ticket, csrf, takenAt: this.#clock.monotonic() };
  }
}
