// SPDX-License-Identifier: Apache-2.0
// Types of the effective config, for folders that receive pools and regions but must not load the config: importing
// this file loads nothing. The types come from the schema, so that a new key needs no line here.
import type { RegionConfig } from '../effective/config.ts';

export type { PoolConfig } from '../effective/config.ts';
/** Everything about a region except how to connect to it. */
export type RegionSettings = Omit<
  RegionConfig,
  'endpoints' | 'login' | 'tls' | 'transport' | 'requestTimeoutMs'
>;
