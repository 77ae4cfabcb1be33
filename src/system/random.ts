// SPDX-License-Identifier: Apache-2.0
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { Random } from '../ports/random.ts';

export const systemRandom: Random = {
  uuid: () => randomUUID(),
  integer: (below) => randomInt(below),
  fraction: () => randomInt(2 ** 47) / 2 ** 47,
  bytes: (length) => new Uint8Array(randomBytes(length)),
};
