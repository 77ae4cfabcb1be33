// SPDX-License-Identifier: Apache-2.0
// The file of `pvescaler plan --save`: what a plan was made from, with the SHA-256 of its content.
import { createHash } from 'node:crypto';
import { InvalidRequest } from '../ports/errors.ts';
import { canonicalJson, parseStoredInput, type StoredInput } from '../scaling/index.ts';
import type { CliContext } from './context.ts';

export function formatStoredPlan(stored: StoredInput): string {
  return `${canonicalJson({ ...stored, digest: digestOf(stored) })}\n`;
}

/** Refuses a file that was changed since it was written: its plan would not be the one that was made. */
export async function readStoredPlan(context: CliContext, file: string): Promise<StoredInput> {
  const text = await context.files.read(file).catch((cause: unknown) => {
    throw new InvalidRequest('REQUEST_INVALID', `cannot read ${file}: ${String(cause)}`, { cause });
  });
  if (text === undefined)
    throw new InvalidRequest('REQUEST_INVALID', `the file ${file} does not exist`);
  return parseStoredPlan(text, file);
}

function parseStoredPlan(text: string, file: string): StoredInput {
  const parsed = parseStoredInput(text);
  if (parsed === undefined)
    throw new InvalidRequest('REQUEST_INVALID', `${file} is not a file of pvescaler plan --save`, {
      hint: 'Files of other versions of pvescaler may differ: use the version that wrote it.',
    });
  const { digest, ...stored } = parsed;
  const found = digestOf(stored);
  if (digest === found) return stored;
  throw new InvalidRequest(
    'REQUEST_INVALID',
    `${file} was changed since pvescaler plan --save wrote it: its digest is ${digest ?? 'missing'}, its content has ${found}`,
    { hint: 'Make the plan again with the file as it was written.' },
  );
}

function digestOf(stored: StoredInput): string {
  return `sha256:${createHash('sha256').update(canonicalJson(stored)).digest('hex')}`;
}
