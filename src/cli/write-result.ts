// SPDX-License-Identifier: Apache-2.0
import { InvalidArgumentError } from 'commander';
import { Conflict, InvalidRequest } from '../ports/errors.ts';
import type { CliContext } from './context.ts';
import { isOutputFormat } from './output-option.ts';

interface Destination {
  /** Absent: standard output. */
  readonly output?: string;
  readonly force?: true;
}

/** The value of an `--output` that names a file: in other commands it is a format. */
export function parseFileName(text: string): string {
  if (!isOutputFormat(text)) return text;
  throw new InvalidArgumentError(`Here it names a file; for a file of that name write ./${text}.`);
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
