// SPDX-License-Identifier: Apache-2.0
// The parameters of every mapping function.

import type { SourceEnvironment } from './result.ts';
import type { SourceReader } from './source/reader.ts';
import type { ImportWriter } from './writer.ts';

export interface ImportContext {
  readonly writer: ImportWriter;
  readonly reader: SourceReader;
  readonly environment: SourceEnvironment;
}

/** Default folder of secret files. */
export const SECRETS_FOLDER = '/etc/pvescaler';
