// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { InvalidConfig, Unreachable } from '../ports/errors.ts';
import { Gate } from './limits.ts';

export interface Endpoint {
  /** `https://pve1.example:8006`, without a path. */
  readonly origin: string;
  readonly hostname: string;
  readonly gate: Gate;
  /** For calls that only wait for a guest, mostly on another host: they must not keep the others out. */
  readonly waitingRoom: Gate;
}

/** Whoever asks guests sees to it that no single host is asked about many. */
const GUESTS_PER_REQUEST = 4;

/**
 * The hosts at which a region's API can be asked: any of them answers for all. One that failed goes to the
 * end of the line for a while instead of costing every call a timeout; it is still tried when the others fail.
 */
export class Endpoints {
  readonly #all: readonly Endpoint[];
  readonly #clock: Clock;
  readonly #restMs: number;
  readonly #failedAt = new Map<Endpoint, number>();

  constructor(
    origins: readonly string[],
    options: { readonly clock: Clock; readonly restMs: number; readonly requestsAtOnce: number },
  ) {
    if (origins.length === 0) {
      throw new InvalidConfig('CONFIG_INVALID', 'a region needs at least one endpoint');
    }
    this.#all = origins.map((text) => endpoint(text, options.requestsAtOnce));
    this.#clock = options.clock;
    this.#restMs = options.restMs;
  }

  /** In the order to try. `near` names the host the call is about: asking it directly saves a hop. */
  inOrder(near?: string): readonly Endpoint[] {
    const isNear = (candidate: Endpoint) =>
      near !== undefined &&
      (candidate.hostname === near || candidate.hostname.startsWith(`${near}.`));
    const rank = (candidate: Endpoint) =>
      (this.#isResting(candidate) ? 2 : 0) + (isNear(candidate) ? 0 : 1);
    return this.#all.toSorted((a, b) => rank(a) - rank(b));
  }

  answered(endpoint: Endpoint): void {
    this.#failedAt.delete(endpoint);
  }

  failed(endpoint: Endpoint): void {
    this.#failedAt.set(endpoint, this.#clock.monotonic());
    // Who waits for a turn at a host that hangs would wait for each timeout before; another may be free.
    if (this.#all.every((other) => this.#isResting(other))) return;
    const message = `${endpoint.origin} does not answer`;
    const facts = { requestSent: false };
    const error = new Unreachable('PVE_UNREACHABLE', message, { facts });
    endpoint.gate.turnAway(error);
    endpoint.waitingRoom.turnAway(error);
  }

  #isResting(endpoint: Endpoint): boolean {
    const failedAt = this.#failedAt.get(endpoint);
    return failedAt !== undefined && this.#clock.monotonic() - failedAt < this.#restMs;
  }
}

function endpoint(text: string, requestsAtOnce: number): Endpoint {
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
    gate: new Gate(requestsAtOnce),
    waitingRoom: new Gate(requestsAtOnce * GUESTS_PER_REQUEST),
  };
}
