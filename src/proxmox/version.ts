// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import type { CallOptions } from '../ports/hypervisor.ts';
import { recordOf, textOf } from './json.ts';
import { beforeSending } from './not-sent.ts';
import type { Api } from './request.ts';
import { tooOld } from './translate.ts';

/** Hosts are upgraded while we run. */
const TRUSTED_FOR_MS = 10 * 60 * 1_000;

/** Which Proxmox VE a region runs, and what that forbids. */
export class VersionGate {
  readonly #api: Api;
  readonly #clock: Clock;
  #known: { readonly version: string; readonly readAt: number } | undefined;

  constructor(api: Api, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  async current(options: CallOptions): Promise<string> {
    const known = this.#known;
    if (known !== undefined && this.#clock.monotonic() - known.readAt < TRUSTED_FOR_MS) {
      return known.version;
    }
    const data = await beforeSending(
      this.#api.data({
        method: 'GET',
        path: '/version',
        doing: 'read the version',
        ...options,
      }),
    );
    const version = textOf(recordOf(data)['version']) ?? '0';
    this.#known = { version, readAt: this.#clock.monotonic() };
    return version;
  }

  async isAtLeast(wanted: string, options: CallOptions): Promise<boolean> {
    return isAtLeast(await this.current(options), wanted);
  }

  async require(wanted: string, feature: string, options: CallOptions): Promise<void> {
    const version = await this.current(options);
    if (!isAtLeast(version, wanted)) throw tooOld(feature, version);
  }
}

/** Major and minor count: `8.4.1`, `9.0~beta2` and `8.10` are compared as numbers. */
export function isAtLeast(version: string, wanted: string): boolean {
  const [major = 0, minor = 0] = numbers(version);
  const [wantedMajor = 0, wantedMinor = 0] = numbers(wanted);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

function numbers(version: string): readonly number[] {
  return (version.match(/\d+/g) ?? []).map(Number);
}
