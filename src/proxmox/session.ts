// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { PvescalerError, Unauthorized } from '../ports/errors.ts';
import { rejectOnAbort } from './retry.ts';
import { asBoolean, asObject, asText, type Parameters } from './wire-values.ts';

/** Secrets are functions: a rotated secret takes effect, and printing the object reveals nothing. */
export type Credentials =
  /** `id` is `user@realm!name`. */
  | { readonly kind: 'token'; readonly id: string; secret(): string | Promise<string> }
  /** `user` is `name@realm`. */
  | { readonly kind: 'password'; readonly user: string; password(): string | Promise<string> }
  /** The transport logs in; commands on a host run as `root@pam`. */
  | { readonly kind: 'transport'; readonly user: string };

export interface Session {
  /** Authentication headers for one request. */
  headers(method: string, signal?: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** Call it after a 401. Discards the refused headers; returns whether `headers` can return new ones. */
  invalidate(refused: Readonly<Record<string, string>>): boolean;
  /** Values that must not appear in any message. */
  secrets(): readonly string[];
  /** `user@realm`, without the token's name. */
  readonly user: string;
}

/** Posts to /access/ticket and returns the data of the response. */
export type Login = (form: Parameters) => Promise<unknown>;

export function createSession(
  credentials: Credentials,
  options: { readonly clock: Clock; readonly login: Login },
): Session {
  switch (credentials.kind) {
    case 'token':
      return new TokenSession(credentials);
    case 'password':
      return new TicketSession(credentials, options);
    case 'transport':
      return {
        user: credentials.user,
        headers: () => Promise.resolve({}),
        invalidate: () => false,
        secrets: () => [],
      };
  }
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

  invalidate(): boolean {
    return false;
  }

  secrets(): readonly string[] {
    return [this.#secret];
  }
}

interface Ticket {
  readonly ticket: string;
  readonly csrf: string;
  readonly obtainedAt: number;
}

/** A ticket is valid for two hours. Renewal after one hour leaves time for retries. */
const RENEW_AFTER_MS = 60 * 60 * 1_000;

class TicketSession implements Session {
  readonly user: string;
  readonly #credentials: Credentials & { readonly kind: 'password' };
  readonly #clock: Clock;
  readonly #postLogin: Login;
  #ticket: Ticket | undefined;
  #password = '';
  /** Shared by all requests that need a ticket. */
  #loginInProgress: Promise<Ticket> | undefined;

  constructor(
    credentials: Credentials & { readonly kind: 'password' },
    options: { readonly clock: Clock; readonly login: Login },
  ) {
    this.#credentials = credentials;
    this.user = credentials.user;
    this.#clock = options.clock;
    this.#postLogin = options.login;
  }

  async headers(method: string, signal?: AbortSignal): Promise<Readonly<Record<string, string>>> {
    const { ticket, csrf } = await rejectOnAbort(this.#currentTicket(), signal);
    const cookie = { cookie: `PVEAuthCookie=${encodeURIComponent(ticket)}` };
    return method === 'GET' ? cookie : { ...cookie, csrfpreventiontoken: csrf };
  }

  invalidate(refused: Readonly<Record<string, string>>): boolean {
    // Another request may have renewed the ticket since; then the new ticket is kept.
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

  #currentTicket(): Promise<Ticket> {
    const held = this.#ticket;
    if (held !== undefined && this.#clock.monotonic() - held.obtainedAt < RENEW_AFTER_MS) {
      return Promise.resolve(held);
    }
    this.#loginInProgress ??= this.#obtainTicket(held).finally(() => {
      this.#loginInProgress = undefined;
    });
    return this.#loginInProgress;
  }

  async #obtainTicket(held: Ticket | undefined): Promise<Ticket> {
    this.#ticket =
      (await this.#renewTicket(held)) ?? (await this.#logIn(await this.#readPassword()));
    return this.#ticket;
  }

  /** Proxmox accepts a valid ticket in place of the password. Resolves with undefined if the ticket is refused. */
  async #renewTicket(held: Ticket | undefined): Promise<Ticket | undefined> {
    if (held === undefined) return undefined;
    try {
      return await this.#logIn(held.ticket);
    } catch (error) {
      if (error instanceof PvescalerError && error.code === 'CREDENTIALS_REFUSED') return undefined;
      throw error;
    }
  }

  async #readPassword(): Promise<string> {
    this.#password = await this.#credentials.password();
    return this.#password;
  }

  async #logIn(password: string): Promise<Ticket> {
    const data = asObject(await this.#postLogin({ username: this.user, password }));
    if (asBoolean(data['NeedTFA'])) {
      throw new Unauthorized(
        'CREDENTIALS_REFUSED',
        `log in as ${this.user}: Proxmox requires a second factor`,
        {
          hint: 'Use an API token: tokens need no second factor.',
        },
      );
    }
    const ticket = asText(data['ticket']) ?? '';
    const csrf = asText(data['CSRFPreventionToken']) ?? '';
    return { ticket, csrf, obtainedAt: this.#clock.monotonic() };
  }
}
