// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IsoError, readIso } from './iso9660.ts';
import { buildTestIso } from './testing/test-iso.ts';

function readFixture(name: string): Uint8Array {
  const path = new URL(`fixtures/seed-${name}.iso.gz`, import.meta.url);
  return new Uint8Array(gunzipSync(readFileSync(path)));
}

function readText(image: Uint8Array, path: string): string | undefined {
  const file = readIso(image).files.get(path);
  return file === undefined ? undefined : new TextDecoder().decode(file.bytes);
}

const LONG_NAME =
  "nested/a rather long name, with spaces and signs, that needs more than one directory record's room: 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789.txt";

describe('readIso on images of real tools', () => {
  it.each([
    ['rock-ridge-xorriso', 'cidata'],
    ['rock-ridge-genisoimage', 'CIDATA'],
  ])('reads %s with Rock Ridge names, modes and continued records', (name, label) => {
    const image = readIso(readFixture(name));
    expect(image.label).toBe(label);
    expect(image.names).toBe('rock-ridge');
    expect([...image.files.keys()]).toEqual([
      'meta-data',
      LONG_NAME,
      'network-config',
      'user-data',
    ]);
    expect(image.files.get('user-data')?.mode).toBe(0o100644);
    expect(readText(readFixture(name), 'meta-data')).toBe(
      'instance-id: i-1f2e3d\nlocal-hostname: worker-7\n',
    );
    expect(readText(readFixture(name), LONG_NAME)).toBe('deep\n');
  });

  it('reads Joliet names where there is no Rock Ridge', () => {
    const image = readIso(readFixture('joliet-genisoimage'));
    expect(image.names).toBe('joliet');
    expect(image.files.has('network-config')).toBe(true);
    expect(readText(readFixture('joliet-genisoimage'), 'user-data')).toContain('#cloud-config');
  });
});

describe('readIso on generated images', () => {
  const files = { 'meta-data': 'a', 'user-data': 'b'.repeat(5000), empty: '' };

  it.each([
    { joliet: true, rockRidge: true, names: 'rock-ridge' },
    { joliet: false, rockRidge: true, names: 'rock-ridge' },
    { joliet: true, rockRidge: false, names: 'joliet' },
    { joliet: false, rockRidge: false, names: 'plain' },
  ])('reads $names names (Joliet $joliet, Rock Ridge $rockRidge)', ({ names, ...options }) => {
    const image = readIso(buildTestIso({ files, ...options }));
    expect(image.names).toBe(names);
    expect([...image.files.keys()]).toEqual(Object.keys(files));
    expect(readText(buildTestIso({ files, ...options }), 'user-data')).toBe(files['user-data']);
  });

  it('returns the Rock Ridge mode, and none without Rock Ridge', () => {
    const mode = (rockRidge: boolean) =>
      readIso(buildTestIso({ files, rockRidge })).files.get('meta-data')?.mode;
    expect(mode(true)).toBe(0o100600);
    expect(mode(false)).toBeUndefined();
  });

  it('joins the extents of one file', () => {
    const image = buildTestIso({ files: { A: 'one ', B: 'two' } });
    const first = 20 * 2048 + 34 + 34;
    image[first + 25] = 0x80;
    expect(readText(image, 'b')).toBe('one two');
  });
});

describe('readIso on invalid images', () => {
  const image = () => buildTestIso({ files: { 'meta-data': 'x' }, joliet: true, rockRidge: true });
  const readError = (bytes: Uint8Array) => {
    try {
      readIso(bytes);
      return 'accepted';
    } catch (error) {
      return error instanceof IsoError ? error.message : String(error);
    }
  };

  it('reports a truncated image', () => {
    expect(readError(new Uint8Array())).toContain('truncated');
    expect(readError(image().subarray(0, 22 * 2048))).toContain('truncated: the volume has');
  });

  it('reports what is malformed', () => {
    const broken = (change: (bytes: Uint8Array) => void) => {
      const bytes = image();
      change(bytes);
      return readError(bytes);
    };
    const root = 16 * 2048 + 156;
    expect(broken((bytes) => bytes.fill(0, 16 * 2048, 17 * 2048))).toContain(
      'no volume descriptor',
    );
    expect(broken((bytes) => bytes.set([9], 16 * 2048 + 80))).toContain('byte orders disagree');
    expect(broken((bytes) => bytes.set([0, 4, 4, 0], 16 * 2048 + 128))).toContain('blocks of 1024');
    expect(broken((bytes) => bytes.set([0], root + 25))).toContain('root is not a directory');
    expect(broken((bytes) => bytes.set([10], root))).toContain('directory record of 10 bytes');
    expect(broken((bytes) => bytes.set([7], root + 26))).toContain('interleaved');
    expect(broken((bytes) => bytes.set([20], 20 * 2048 + 76))).toContain('record of 20 bytes');
    expect(broken((bytes) => bytes.set([0], 20 * 2048 + 34 + 4))).toContain('check bytes');
    const noPrimary = broken((bytes) => bytes.set([0], 16 * 2048));
    expect(noPrimary).toContain('no primary volume descriptor');
  });

  it('detects a directory that contains itself', () => {
    const bytes = buildTestIso({ files: { LOOP: 'x' } });
    const record = 20 * 2048 + 68;
    bytes.copyWithin(record + 2, 16 * 2048 + 156 + 2, 16 * 2048 + 156 + 18);
    bytes[record + 25] = 2;
    expect(readError(bytes)).toContain('contains itself');
  });

  it('throws only IsoError for any changed bytes', () => {
    const bases = [image(), readFixture('rock-ridge-xorriso'), readFixture('joliet-genisoimage')];
    const change = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }));
    // Most of an image is padding, so half of the changes target the descriptors and directories.
    const aimed = fc.tuple(
      fc.integer({ min: 16 * 2048, max: 34 * 2048 }),
      fc.integer({ min: 0, max: 255 }),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...bases),
        fc.array(fc.oneof(change, aimed), { minLength: 1, maxLength: 40 }),
        fc.option(fc.nat()),
        (base, changes, cut) => {
          const bytes = Uint8Array.from(base);
          for (const [at, value] of changes) bytes[at % bytes.length] = value;
          const image = cut === null ? bytes : bytes.subarray(0, cut % bytes.length);
          expect(readError(image)).not.toMatch(/^[A-Z]\w*Error/);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('throws only IsoError for arbitrary directory records', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 40, maxLength: 400 }), (noise) => {
        const bytes = image();
        bytes.set(noise, 20 * 2048 + 41);
        expect(readError(bytes)).not.toMatch(/^[A-Z]\w*Error/);
      }),
      { numRuns: 300 },
    );
  });
});
