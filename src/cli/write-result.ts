// SPDX-License-Identifier: Apache-2.0
import { Conflict, InvalidRequest } from '../ports/errors.ts';
import type { CliContext } from './context.ts';

interface Destination {
  /** A file, or standard output. */
  readonly output?: string;
  readonly force?: true;
}

/** To standard output, or to a file that is only overwritten when asked for. */
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
      throw new InvalidRequest('REQUEST_INVALID', `${output} cannot be written: ${String(cause)}`, {
        hint: 'Name a file in a folder you may write to.',
        cause,
      });
    });
  if (outcome === 'exists-already') {
    throw new Conflict('RECORD_EXISTS', `${output} exists already`, {
      hint: 'Name another file, or add --force to overwrite it.',
    });
  }
  context.err(`wrote ${output}\n`);
}
