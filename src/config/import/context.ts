// SPDX-License-Identifier: Apache-2.0
// What every mapping is handed.

import type { SourceEnvironment } from './result.ts';
import type { SourceReader } from './source/reader.ts';
import type { ImportWriter } from './writer.ts';

export interface ImportContext {
  readonly writer: ImportWriter;
  readonly reader: SourceReader;
  readonly environment: SourceEnvironment;
}

/** Where secrets are to be put by default. */
export const SECRETS_FOLDER = '/etc/pvescaler';
