// SPDX-License-Identifier: Apache-2.0

export type FaultKind =
  /** Responds with this status and does not handle the request. */
  | { readonly kind: 'status'; readonly status: number; readonly reason?: string }
  /** Never responds. */
  | { readonly kind: 'hang' }
  /** Breaks the connection before the request is handled. */
  | { readonly kind: 'disconnect' }
  /** Handles the request, then breaks the connection before the response body. */
  | { readonly kind: 'disconnect-after' }
  /** Opens a watch that sends this line and ends. */
  | { readonly kind: 'watch-line'; readonly line: string };

export interface Fault {
  /** `GET`, `WATCH`, `POST`, …; absent = any. */
  readonly verb?: string;
  /** Substring of the path; absent = any. */
  readonly path?: string;
  readonly fault: FaultKind;
  /** Number of requests affected; absent = 1. */
  readonly times?: number;
}

interface ArmedFault {
  readonly fault: Fault;
  remaining: number;
}

/** Injected faults, matched in the order in which they were added. */
export class Faults {
  #armed: ArmedFault[] = [];

  add(fault: Fault): void {
    this.#armed.push({ fault, remaining: fault.times ?? 1 });
  }

  clear(): void {
    this.#armed = [];
  }

  takeMatching(verb: string, path: string): FaultKind | undefined {
    const armed = this.#armed.find(
      ({ fault }) =>
        (fault.verb === undefined || fault.verb === verb) && path.includes(fault.path ?? ''),
    );
    if (armed === undefined) return undefined;
    armed.remaining -= 1;
    if (armed.remaining <= 0) this.#armed = this.#armed.filter((one) => one !== armed);
    return armed.fault.fault;
  }
}
