// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { buildSeedIso, type SeedFileName } from './seed-iso.ts';

const CREATED = Date.UTC(2026, 0, 2, 3, 4, 5);

// An independent reader, written from the standard, that shares no code with the writer.
interface Entry {
  readonly name: string;
  readonly longName: string | undefined;
  readonly mode: number | undefined;
  readonly bytes: Uint8Array;
  readonly time: readonly number[];
}

function readVolume(image: Uint8Array, type: 1 | 2) {
  const view = new DataView(image.buffer);
  const at = [16, 17, 18].map((n) => n * 2048).find((n) => image[n] === type) ?? 0;
  const text = (from: number, to: number) => String.fromCharCode(...image.subarray(from, to));
  const wide = (from: number, to: number) =>
    Array.from({ length: (to - from) / 2 }, (_, i) =>
      String.fromCharCode(view.getUint16(from + 2 * i)),
    ).join('');
  const read = type === 1 ? text : wide;
  const root = view.getUint32(at + 156 + 2, true) * 2048;
  return {
    magic: text(at + 1, at + 6),
    label: read(at + 40, at + 72).trimEnd(),
    blocks: view.getUint32(at + 80, true),
    blocksBig: view.getUint32(at + 84),
    created: text(at + 813, at + 829),
    pathTableRoots: [
      view.getUint32(view.getUint32(at + 140, true) * 2048 + 2, true),
      view.getUint32(view.getUint32(at + 148) * 2048 + 2),
    ].map((block) => block * 2048),
    root,
    entries: [...records(image, root)].map((offset) => entryAt(image, offset, read)),
  };
}

function* records(image: Uint8Array, root: number): Generator<number> {
  for (let at = root; (image[at] ?? 0) > 0; at += image[at] ?? 0) yield at;
}

function entryAt(image: Uint8Array, at: number, read: (from: number, to: number) => string): Entry {
  const view = new DataView(image.buffer);
  const nameLength = image[at + 32] ?? 0;
  const length = view.getUint32(at + 10, true);
  const block = view.getUint32(at + 2, true);
  expect([view.getUint32(at + 6), view.getUint32(at + 14)]).toEqual([block, length]);
  const use = at + 33 + nameLength + (nameLength % 2 === 0 ? 1 : 0);
  return {
    name: nameLength === 1 ? '' : read(at + 33, at + 33 + nameLength),
    ...systemUse(image, use, at + (image[at] ?? 0)),
    bytes: image.slice(block * 2048, block * 2048 + length),
    time: [...image.subarray(at + 18, at + 25)],
  };
}

function systemUse(image: Uint8Array, from: number, end: number) {
  const found: { longName: string | undefined; mode: number | undefined } = {
    longName: undefined,
    mode: undefined,
  };
  for (let at = from; at + 4 <= end && image[at] !== 0; at += image[at + 2] ?? end) {
    const signature = String.fromCharCode(image[at] ?? 0, image[at + 1] ?? 0);
    const data = image.subarray(at + 4, at + (image[at + 2] ?? 0));
    if (signature === 'NM') found.longName = String.fromCharCode(...data.subarray(1));
    if (signature !== 'PX') continue;
    expect(data.length).toBe(32);
    found.mode = new DataView(image.buffer).getUint32(at + 4, true);
  }
  return found;
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

const names: readonly SeedFileName[] = ['meta-data', 'user-data', 'network-config', 'vendor-data'];
const content = fc.oneof(
  fc.uint8Array({ maxLength: 5000 }),
  fc.constantFrom(0, 1, 2047, 2048, 2049, 4096).map((size) => new Uint8Array(size).fill(7)),
);
const anyFiles = fc
  .tuple(content, content, fc.option(content), fc.option(content))
  .map((bytes) => Object.fromEntries(names.map((name, i) => [name, bytes[i] ?? undefined])));

describe('buildSeedIso', () => {
  it('stores every file, of any size, under all three names', () => {
    fc.assert(
      fc.property(anyFiles, (files) => {
        const image = buildSeedIso(files, CREATED);
        const wanted = Object.entries(files)
          .flatMap(([name, bytes]) => (bytes === undefined ? [] : [[name, hexOf(bytes)] as const]))
          .sort(([a], [b]) => (a < b ? -1 : 1));
        const primary = readVolume(image, 1);
        const joliet = readVolume(image, 2);
        const isFile = ({ name }: Entry) => name !== '';
        const byRockRidge = primary.entries
          .filter(isFile)
          .map(({ longName, bytes }) => [longName, hexOf(bytes)] as const)
          .sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
        const byJoliet = joliet.entries
          .filter(isFile)
          .map(({ name, bytes }) => [name, hexOf(bytes)]);
        expect(byRockRidge).toEqual(wanted);
        expect(byJoliet).toEqual(wanted);
        for (const { blocks, blocksBig } of [primary, joliet]) {
          expect([blocks * 2048, blocksBig * 2048]).toEqual([image.length, image.length]);
        }
      }),
    );
  });

  it('sets the label cidata and the date, and allows only root to read', () => {
    const image = buildSeedIso(
      { 'meta-data': 'm', 'user-data': 'u', 'network-config': 'n' },
      CREATED,
    );
    for (const type of [1, 2] as const) {
      const volume = readVolume(image, type);
      expect(volume).toMatchObject({
        magic: 'CD001',
        label: 'cidata',
        created: '2026010203040500',
      });
      expect(volume.pathTableRoots).toEqual([volume.root, volume.root]);
    }
    const { entries } = readVolume(image, 1);
    expect(entries.map(({ name, mode }) => [name, mode?.toString(8)])).toEqual([
      ['', '40500'],
      ['', '40500'],
      ['META_DAT.;1', '100400'],
      ['NETWORK_.;1', '100400'],
      ['USER_DAT.;1', '100400'],
    ]);
    expect(entries.map(({ time }) => time)).toContainEqual([126, 1, 2, 3, 4, 5, 0]);
    expect(new TextDecoder('latin1').decode(image)).toContain('RRIP_1991A');
  });

  it('encodes text as UTF-8 and is deterministic', () => {
    const files = { 'meta-data': 'größe: 1\n', 'user-data': '#cloud-config\n' };
    const image = buildSeedIso(files, CREATED);
    expect(buildSeedIso(files, CREATED)).toEqual(image);
    const [, , meta] = readVolume(image, 1).entries;
    expect(new TextDecoder().decode(meta?.bytes)).toBe('größe: 1\n');
    expect(buildSeedIso({}, CREATED)).toHaveLength(26 * 2048);
  });
});
