// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { InvalidConfig, Unreachable } from '../ports/errors.ts';
import { ConcurrencyLimit } from './concurrency-limit.ts';

export interface Endpoint {
  /** `https://pve1.example:8006`, without a path. */
  readonly origin: string;
  readonly hostname: string;
  readonly requestLimit: ConcurrencyLimit;
  /** For calls that only wait for a guest, mostly on another host: they must not keep the others out. */
  readonly guestRequestLimit: ConcurrencyLimit;
}

/** Whoever asks guests sees to it that no single host is asked about many. */
const GUEST_LIMIT_FACTOR = 4;

/**
 * The hosts at which a region's API can be asked: any of them answers for all. One that failed goes to the
 * end of the line for a while instead of costing every call a timeout; it is still tried when the others fail.
 */
export class Endpoints {
  readonly #endpoints: readonly Endpoint[];
  readonly #clock: Clock;
  readonly #cooldownMs: number;
  readonly #failedAt = new Map<Endpoint, number>();

  constructor(
    origins: readonly string[],
    options: {
      readonly clock: Clock;
      readonly cooldownMs: number;
      readonly maxConcurrentRequests: number;
    },
  ) {
    if (origins.length === 0) {
      throw new InvalidConfig('CONFIG_INVALID', 'a region needs at least one endpoint');
    }
    this.#endpoints = origins.map((text) => parseEndpoint(text, options.maxConcurrentRequests));
    this.#clock = options.clock;
    this.#cooldownMs = options.cooldownMs;
  }

  /** In the order to try. `near` names the host the call is about: asking it directly saves a hop. */
  orderedFor(host?: string): readonly Endpoint[] {
    const isOnHost = (candidate: Endpoint) =>
      host !== undefined &&
      (candidate.hostname === host || candidate.hostname.startsWith(`${host}.`));
    const rank = (candidate: Endpoint) =>
      (this.#isCoolingDown(candidate) ? 2 : 0) + (isOnHost(candidate) ? 0 : 1);
    return this.#endpoints.toSorted((a, b) => rank(a) - rank(b));
  }

  markResponsive(endpoint: Endpoint): void {
    this.#failedAt.delete(endpoint);
  }

  markFailed(endpoint: Endpoint): void {
    this.#failedAt.set(endpoint, this.#clock.monotonic());
    // Who waits for a turn at a host that hangs would wait for each timeout before; another may be free.
    if (this.#endpoints.every((other) => this.#isCoolingDown(other))) return;
    const message = `${endpoint.origin} does not answer`;
    const facts = { requestSent: false };
    const error = new Unreachable('PVE_UNREACHABLE', message, { facts });
    endpoint.requestLimit.rejectWaiters(error);
    endpoint.guestRequestLimit.rejectWaiters(error);
  }

  #isCoolingDown(endpoint: Endpoint): boolean {
    const failedAt = this.#failedAt.get(endpoint);
    return failedAt !== undefined && this.#clock.monotonic() - failedAt < this.#cooldownMs;
  }
}

function parseEndpoint(text: string, maxConcurrentRequests: number): Endpoint {
  const withScheme = /^https?:\/\//.test(text) ? text : `https://${text}`;
  if (!URL.canParse(withScheme)) {
    throw new InvalidConfig('CONFIG_INVALID', `not an address of a Proxmox host: ${text}`);
  }
  const url = new URL(withScheme);
  const hasPort = url.port !== '' || /:\d+(\/|$)/.test(withScheme.slice('https://'.length - 1));
  if (!hasPort) url.port = '8006';
  return {
    origin: url.origin,
    hostname: url.hostname,
    requestLimit: new ConcurrencyLimit(maxConcurrentRequests),
    guestRequestLimit: new ConcurrencyLimit(maxConcurrentRequests * GUEST_LIMIT_FACTOR),
  };
}
