// SPDX-License-Identifier: Apache-2.0
// CA bundles made with OpenSSL, and their hashes by k3s' algorithm in Go.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rancherCaHash } from '../../src/fleet/machine/ca-hash.ts';

interface CaBundle {
  readonly name: string;
  readonly pem: string;
  readonly hash: string;
}

const path = join(import.meta.dirname, 'fixtures/ca-bundles.json');
const BUNDLES: readonly CaBundle[] = JSON.parse(readFileSync(path, 'utf8'));
const NOW = Date.parse('2027-01-01T00:00:00Z');
const LONG_AFTER = Date.parse('2200-01-01T00:00:00Z');

describe('the CA hash in a token of k3s and RKE2', () => {
  it.each(BUNDLES)('is that of k3s for $name', ({ pem, hash }) => {
    expect(rancherCaHash(pem, NOW)).toBe(hash);
  });

  it('is that of the bytes when the certificates have expired', () => {
    const [one, custom] = BUNDLES;
    expect(rancherCaHash(one?.pem ?? '', LONG_AFTER)).toBe(one?.hash);
    expect(rancherCaHash(custom?.pem ?? '', LONG_AFTER)).not.toBe(custom?.hash);
  });
});
