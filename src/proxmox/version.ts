// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import type { CallOptions } from '../ports/hypervisor.ts';
import type { ApiClient } from './api-client.ts';
import { rejectAsNotSent } from './retry.ts';
import { proxmoxTooOld } from './translate-errors.ts';
import { asObject, asText } from './wire-values.ts';

/** Hosts can be upgraded at any time. */
const MAX_AGE_MS = 10 * 60 * 1_000;

/** Reads the Proxmox VE version of a region and checks minimum versions. */
export class VersionCheck {
  readonly #api: ApiClient;
  readonly #clock: Clock;
  #known: { readonly version: string; readonly readAt: number } | undefined;

  constructor(api: ApiClient, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  async current(options: CallOptions): Promise<string> {
    const known = this.#known;
    if (known !== undefined && this.#clock.monotonic() - known.readAt < MAX_AGE_MS) {
      return known.version;
    }
    const data = await rejectAsNotSent(
      this.#api.requestData({
        method: 'GET',
        path: '/version',
        operation: 'read the Proxmox VE version',
        ...options,
      }),
    );
    const version = asText(asObject(data)['version']) ?? '0';
    this.#known = { version, readAt: this.#clock.monotonic() };
    return version;
  }

  async isAtLeast(minimum: string, options: CallOptions): Promise<boolean> {
    return isAtLeast(await this.current(options), minimum);
  }

  async requireAtLeast(minimum: string, feature: string, options: CallOptions): Promise<void> {
    const version = await this.current(options);
    if (!isAtLeast(version, minimum)) throw proxmoxTooOld(feature, version);
  }
}

/** Compares major and minor as numbers; works for `8.4.1`, `9.0~beta2` and `8.10`. */
export function isAtLeast(version: string, minimum: string): boolean {
  const [major = 0, minor = 0] = parseNumbers(version);
  const [minimumMajor = 0, minimumMinor = 0] = parseNumbers(minimum);
  return major > minimumMajor || (major === minimumMajor && minor >= minimumMinor);
}

function parseNumbers(version: string): readonly number[] {
  return (version.match(/\d+/g) ?? []).map(Number);
}
