// SPDX-License-Identifier: Apache-2.0
import type { ConfigPath } from '../config-path.ts';
import type { AddressRange, IpFamily } from '../values/ip-address.ts';

/** One family's static settings with their place. */
export interface StaticAddressPool {
  readonly path: ConfigPath;
  readonly expected: IpFamily | undefined;
  readonly ranges: readonly AddressRange[];
  readonly prefix: number;
  readonly gateway: string | undefined;
}
