// SPDX-License-Identifier: Apache-2.0
import { Conflict, InvalidRequest } from '../ports/errors.ts';
import type { CliContext } from './context.ts';

interface Destination {
  /** Absent: standard output. */
  readonly output?: string;
  readonly force?: true;
}

/** Writes to standard output, or to a file; overwrites only with `force`. */
export async function writeResult(
  context: CliContext,
  text: string,
  to: Destination,
): Promise<void> {
  const { output, force } = to;
  if (output === undefined) return context.out(text);
  const outcome = await context.files
    .write(output, text, { overwrite: force === true })
    .catch((cause: unknown) => {
      throw new InvalidRequest('REQUEST_INVALID', `cannot write ${output}: ${String(cause)}`, {
        hint: 'Choose a file in a folder with write permission.',
        cause,
      });
    });
  if (outcome === 'exists-already') {
    throw new Conflict('RECORD_EXISTS', `${output} already exists`, {
      hint: 'Choose another file, or add --force to overwrite it.',
    });
  }
  context.err(`wrote ${output}\n`);
}
