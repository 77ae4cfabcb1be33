// SPDX-License-Identifier: Apache-2.0
import type { ConfigPath } from '../config-path.ts';
import type { AddressRange, Family } from '../values/address.ts';

/** One family's static settings with their place. */
export interface StaticPool {
  readonly path: ConfigPath;
  readonly expected: Family | undefined;
  readonly ranges: readonly AddressRange[];
  readonly prefix: number;
  readonly gateway: string | undefined;
}
