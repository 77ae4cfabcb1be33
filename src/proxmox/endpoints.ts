// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { Cancelled, InvalidConfig, Unreachable } from '../ports/errors.ts';

export interface Endpoint {
  /** `https://pve1.example:8006` or `ssh://pve1:22`, without a path. */
  readonly origin: string;
  readonly hostname: string;
  readonly requestLimit: ConcurrencyLimit;
  /** For requests that wait for a guest, mostly on another host: they must not block other requests. */
  readonly guestRequestLimit: ConcurrencyLimit;
}

/** Higher than the other limit: the caller already limits how many guests of one host it queries. */
const GUEST_LIMIT_FACTOR = 4;

/** A host as the cluster reports it. */
export interface ReportedHost {
  readonly name: string;
  /** An IP address. */
  readonly address: string | undefined;
  /** The host of the endpoint that answered. */
  readonly isLocal: boolean;
}

const PROXMOX_PORT = '8006';
const IP_ADDRESS = /^[0-9a-f.:]+$/i;
/** An address that does not answer costs each upload a connection timeout. */
const ADDRESS_COOLDOWN_MS = 5 * 60_000;

/**
 * The API endpoints of a region. Each of them serves the whole cluster. An endpoint that failed is tried last for a
 * while, so that not every request waits for its timeout; it is still used when all others fail.
 */
export class Endpoints {
  readonly #endpoints: readonly Endpoint[];
  readonly #clock: Clock;
  readonly #cooldownMs: number;
  readonly #failedAt = new Map<Endpoint, number>();
  readonly #maxConcurrentRequests: number;
  /** Endpoints at the addresses that the cluster reports, by host. TLS verifies them like the configured ones. */
  readonly #reported = new Map<string, Endpoint>();
  /** Hosts of configured endpoints, as the cluster reports them. */
  readonly #hosts = new Map<Endpoint, string>();

  constructor(
    origins: readonly string[],
    options: {
      readonly clock: Clock;
      readonly cooldownMs: number;
      readonly maxConcurrentRequests: number;
    },
  ) {
    if (origins.length === 0) {
      throw new InvalidConfig(
        'CONFIG_INVALID',
        'the region has no endpoint; configure at least one Proxmox host',
      );
    }
    this.#endpoints = origins.map((text) => parseEndpoint(text, options.maxConcurrentRequests));
    this.#clock = options.clock;
    this.#cooldownMs = options.cooldownMs;
    this.#maxConcurrentRequests = options.maxConcurrentRequests;
  }

  /** Replaces what is known of the hosts; `source` is the endpoint that reported it. */
  learnHosts(hosts: readonly ReportedHost[], source: Endpoint): void {
    this.#hosts.clear();
    for (const { name, address, isLocal } of hosts) {
      const origin = address === undefined ? undefined : originOf(address);
      for (const endpoint of this.#endpoints) {
        if (endpoint.origin === origin || (isLocal && endpoint === source))
          this.#hosts.set(endpoint, name);
      }
      const known = this.#reported.get(name);
      if (origin === undefined) this.#reported.delete(name);
      else if (known?.origin !== origin)
        this.#reported.set(name, parseEndpoint(origin, this.#maxConcurrentRequests));
    }
  }

  /** Whether a configured endpoint is on the host, as far as is known. */
  isOnHost(host: string): boolean {
    return this.#endpoints.some((endpoint) => this.#isOn(endpoint, host));
  }

  /**
   * Whether the hosts can be reached at their own addresses: not if an endpoint has another scheme or port than those of
   * Proxmox, because then it is a reverse proxy or a forwarded port.
   */
  get mayReachHosts(): boolean {
    return this.#endpoints.every(({ origin }) => {
      const { protocol, port } = new URL(origin);
      return protocol === 'https:' && port === PROXMOX_PORT;
    });
  }

  /** The endpoint at the host's own address, unless it failed lately. */
  reportedFor(host: string): Endpoint | undefined {
    const endpoint = this.#reported.get(host);
    if (endpoint === undefined || this.#isCoolingDown(endpoint, ADDRESS_COOLDOWN_MS))
      return undefined;
    return endpoint;
  }

  /** Returns the endpoints in the order to try. An endpoint on `host` comes first: it needs no proxying to another host. */
  orderedFor(host?: string): readonly Endpoint[] {
    const rank = (candidate: Endpoint) =>
      (this.#isCoolingDown(candidate) ? 2 : 0) +
      (host !== undefined && this.#isOn(candidate, host) ? 0 : 1);
    return this.#endpoints.toSorted((a, b) => rank(a) - rank(b));
  }

  markResponsive(endpoint: Endpoint): void {
    this.#failedAt.delete(endpoint);
  }

  markFailed(endpoint: Endpoint): void {
    this.#failedAt.set(endpoint, this.#clock.monotonic());
    // Queued requests would wait for the timeouts of those ahead of them; another endpoint may respond.
    if (this.#endpoints.every((other) => this.#isCoolingDown(other))) return;
    const message = `endpoint ${endpoint.origin} does not respond`;
    const facts = { requestSent: false };
    const error = new Unreachable('PVE_UNREACHABLE', message, { facts });
    endpoint.requestLimit.rejectWaiters(error);
    endpoint.guestRequestLimit.rejectWaiters(error);
  }

  #isOn(endpoint: Endpoint, host: string): boolean {
    const { hostname } = endpoint;
    return (
      hostname === host || hostname.startsWith(`${host}.`) || this.#hosts.get(endpoint) === host
    );
  }

  #isCoolingDown(endpoint: Endpoint, cooldownMs = this.#cooldownMs): boolean {
    const failedAt = this.#failedAt.get(endpoint);
    return failedAt !== undefined && this.#clock.monotonic() - failedAt < cooldownMs;
  }
}

/** Undefined for anything but an IP address: a name in the answer could be resolved to any server. */
function originOf(address: string): string | undefined {
  if (!IP_ADDRESS.test(address)) return undefined;
  const url = `https://${address.includes(':') ? `[${address}]` : address}:${PROXMOX_PORT}`;
  return URL.canParse(url) ? new URL(url).origin : undefined;
}

function parseEndpoint(text: string, maxConcurrentRequests: number): Endpoint {
  const withScheme = /^(https?|ssh):\/\//.test(text) ? text : `https://${text}`;
  if (!URL.canParse(withScheme)) {
    throw new InvalidConfig(
      'CONFIG_INVALID',
      `invalid Proxmox endpoint: ${text} is not a URL or host name`,
    );
  }
  const url = new URL(withScheme);
  const hasPort = url.port !== '' || /:\d+(\/|$)/.test(withScheme.slice('https://'.length - 1));
  if (!hasPort) url.port = PROXMOX_PORT;
  return {
    // `url.origin` is null for ssh.
    origin: `${url.protocol}//${url.host}`,
    hostname: url.hostname,
    requestLimit: new ConcurrencyLimit(maxConcurrentRequests),
    guestRequestLimit: new ConcurrencyLimit(maxConcurrentRequests * GUEST_LIMIT_FACTOR),
  };
}

interface Waiter {
  readonly admit: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Runs at most `limit` functions concurrently and queues the rest in FIFO order. A Proxmox host serves its API and its web
 * interface with three workers, each busy with one request at a time; more requests would only make both slow.
 */
export class ConcurrencyLimit {
  readonly #limit: number;
  #active = 0;
  readonly #waiters = new Set<Waiter>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get active(): number {
    return this.#active;
  }

  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#acquire(signal);
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  #acquire(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) return Promise.reject(cancelledWhileQueued());
    if (this.#active < this.#limit) {
      this.#active += 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiters.delete(waiter);
        reject(cancelledWhileQueued());
      };
      const waiter: Waiter = {
        admit: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
        reject: (error) => {
          signal?.removeEventListener('abort', onAbort);
          reject(error);
        },
      };
      this.#waiters.add(waiter);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Rejects all queued callers; functions that already run continue. */
  rejectWaiters(error: Error): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiters) waiter.reject(error);
  }

  /** Passes the slot directly to the first waiter, so that a new caller cannot overtake the queue. */
  #release(): void {
    const [next] = this.#waiters;
    if (next === undefined) {
      this.#active -= 1;
      return;
    }
    this.#waiters.delete(next);
    next.admit();
  }
}

function cancelledWhileQueued(): Cancelled {
  return new Cancelled('CANCELLED', 'the caller aborted the request while it was queued', {
    facts: { requestSent: false },
  });
}
