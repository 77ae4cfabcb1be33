// SPDX-License-Identifier: Apache-2.0
import { createHash } from 'node:crypto';
import type { ObjectMeta } from '../objects.ts';

/** The key of a record whose object has another name. */
export const KEY_ANNOTATION = 'pvescaler.dev/key';

const NAME = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const HASHED = /-x[0-9a-f]{16}$/;
const MAX_READABLE = 200;

/**
 * The name of the object of a record. Most keys are valid names: ids, and names of pools. Others, such as the addresses of
 * leases, keep what a name may contain and get a hash, so that different keys have different names.
 */
export function objectName(key: string): string {
  if (NAME.test(key) && !HASHED.test(key)) return key;
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 16);
  const readable = key
    .toLowerCase()
    .replaceAll(/[^a-z0-9.]+/g, '-')
    .replaceAll(/-*\.+[-.]*/g, '.')
    .slice(0, MAX_READABLE)
    .replaceAll(/^[-.]+|[-.]+$/g, '');
  return `${readable === '' ? 'record' : readable}-x${hash}`;
}

export function recordKey({ name = '', annotations }: ObjectMeta): string {
  return annotations?.[KEY_ANNOTATION] ?? name;
}
