// SPDX-License-Identifier: Apache-2.0
// CA bundles made with OpenSSL, and their hashes by k3s' algorithm in Go.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { hashCaBundle } from './discovery.ts';

const FIXTURE = '../../../../../test/bootstrap/fixtures/ca-bundles.json';
const BUNDLES: readonly { readonly name: string; readonly pem: string; readonly hash: string }[] =
  JSON.parse(readFileSync(join(import.meta.dirname, FIXTURE), 'utf8'));

it.each(BUNDLES)('a simulated agent hashes $name as k3s does', ({ pem, hash }) => {
  expect(hashCaBundle(pem)).toBe(hash);
});
