// SPDX-License-Identifier: Apache-2.0
// What every mapping is handed.

import type { Environment } from './result.ts';
import type { Reader } from './source/reader.ts';
import type { Work } from './work.ts';

export interface Context {
  readonly work: Work;
  readonly read: Reader;
  readonly environment: Environment;
}

/** Where secrets are to be put by default. */
export const SECRETS = '/etc/pvescaler';
