// SPDX-License-Identifier: Apache-2.0

export type FaultKind =
  /** Answers with that status and does nothing. */
  | { readonly kind: 'status'; readonly status: number; readonly reason?: string }
  /** Never answers. */
  | { readonly kind: 'hang' }
  /** Breaks the connection instead of an answer. */
  | { readonly kind: 'cut' }
  /** Does the work and breaks the connection. */
  | { readonly kind: 'cut-after' }
  /** A watch that sends this line after its beginning and ends. */
  | { readonly kind: 'line'; readonly line: string };

export interface Fault {
  /** `GET`, `WATCH`, `POST`, …; absent: any. */
  readonly verb?: string;
  /** Part of the path; absent: any. */
  readonly path?: string;
  readonly fault: FaultKind;
  /** How often; absent: once. */
  readonly times?: number;
}

interface Armed {
  readonly fault: Fault;
  left: number;
}

/** What goes wrong next, in the order in which it was ordered. */
export class Faults {
  #armed: Armed[] = [];

  add(fault: Fault): void {
    this.#armed.push({ fault, left: fault.times ?? 1 });
  }

  clear(): void {
    this.#armed = [];
  }

  take(verb: string, path: string): FaultKind | undefined {
    const armed = this.#armed.find(
      ({ fault }) =>
        (fault.verb === undefined || fault.verb === verb) && path.includes(fault.path ?? ''),
    );
    if (armed === undefined) return undefined;
    armed.left -= 1;
    if (armed.left <= 0) this.#armed = this.#armed.filter((one) => one !== armed);
    return armed.fault.fault;
  }
}
