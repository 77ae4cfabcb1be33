// SPDX-License-Identifier: Apache-2.0
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  buildSeedIso,
  type SeedFiles,
  type SeedInput,
  toSeedFiles,
} from '../../../src/bootstrap/index.ts';
import { seedOf } from '../booted.ts';
import type { Tally } from './tally.ts';
import { PYTHON, run } from './tools.ts';

export interface IsosCheck {
  readonly samples: Readonly<Record<string, SeedInput>>;
  readonly folder: string;
  readonly tally: Tally;
  readonly pycdlib: string;
}

const readIso = join(import.meta.dirname, 'read_iso.py');
const CREATED = 1_767_225_600_000;
/** Sizes around a sector boundary, where a wrong length shows. */
const SIZES = [0, 1, 2047, 2048, 2049, 4096, 100_000];

const SHORT: Readonly<Record<string, string>> = {
  'meta-data': 'META_DAT.;1',
  'user-data': 'USER_DAT.;1',
  'network-config': 'NETWORK_.;1',
};

type Bytes = Readonly<Record<string, Buffer>>;

export function checkIsos(check: IsosCheck): number {
  const seeds = Object.entries(check.samples).map(([name, input]): [string, SeedFiles] => [
    name,
    toSeedFiles(seedOf(input).seed),
  ]);
  const sized = SIZES.map((size, index): [string, SeedFiles] => [
    `${size} bytes`,
    {
      'meta-data': new Uint8Array(size).fill(65),
      'user-data': new Uint8Array(SIZES.at(-1 - index) ?? 0).fill(66),
      'network-config': new Uint8Array(size).fill(67),
    },
  ]);
  for (const [name, files] of [...seeds, ...sized]) checkIso(check, name, files);
  return seeds.length + sized.length;
}

function checkIso(check: IsosCheck, name: string, files: SeedFiles): void {
  const path = join(check.folder, 'seed.iso');
  writeFileSync(path, buildSeedIso(files, CREATED));
  const expected = Object.fromEntries(
    Object.entries(files).map(([file, content]) => [file, Buffer.from(content)]),
  );
  const compare = (reader: string, found: Bytes, output: string) =>
    check.tally.check(`${name}: ${reader}`, isDeepStrictEqual(found, expected), () => output);
  for (const nameOption of ['-R', '-J']) {
    const [found, output] = readByIsoinfo(path, nameOption, Object.keys(expected));
    compare(`isoinfo ${nameOption}`, found, output);
  }
  compare('xorriso', ...readByXorriso(path, check.folder, Object.keys(expected)));
  const pycdlib = run(PYTHON, [readIso, path], { PYTHONPATH: check.pycdlib });
  const byPathKind = (pycdlib.status === 0 ? JSON.parse(pycdlib.out.toString()) : {}) as Readonly<
    Record<string, Readonly<Record<string, string>>>
  >;
  for (const pathKind of ['rr_path', 'joliet_path', 'iso_path']) {
    const long =
      pathKind === 'iso_path'
        ? longNames(byPathKind[pathKind] ?? {})
        : (byPathKind[pathKind] ?? {});
    compare(`pycdlib ${pathKind}`, decoded(long), pycdlib.text.slice(-2000));
  }
}

function longNames(found: Readonly<Record<string, string>>): Record<string, string> {
  const names = Object.entries(SHORT).filter(([, short]) => found[short] !== undefined);
  return Object.fromEntries(names.map(([long, short]) => [long, found[short] ?? '']));
}

function decoded(found: Readonly<Record<string, string>>): Bytes {
  return Object.fromEntries(
    Object.entries(found).map(([name, text]) => [name, Buffer.from(text, 'base64')]),
  );
}

function readByIsoinfo(
  path: string,
  nameOption: string,
  names: readonly string[],
): [Bytes, string] {
  const listed = run('/usr/bin/isoinfo', ['-i', path, nameOption, '-f']).text;
  const found = listed.split('\n').map((line) => line.replace(/^\//, '').replace(/;1$/, ''));
  const extracted = names
    .filter((name) => found.includes(name))
    .map((name): [string, Buffer] => [
      name,
      run('/usr/bin/isoinfo', ['-i', path, nameOption, '-x', `/${name}`]).out,
    ]);
  return [Object.fromEntries(extracted), listed];
}

function readByXorriso(path: string, folder: string, names: readonly string[]): [Bytes, string] {
  const target = join(folder, 'extracted');
  const ran = run('/usr/bin/xorriso', ['-osirrox', 'on', '-indev', path, '-extract', '/', target]);
  const isCidata = /Volume id\s*: 'cidata'/.test(ran.text);
  const found = ran.status === 0 && isCidata ? names : [];
  const bytes = found.map((name): [string, Buffer] => [name, readFileSync(join(target, name))]);
  rmSync(target, { recursive: true, force: true });
  return [Object.fromEntries(bytes), ran.text];
}
