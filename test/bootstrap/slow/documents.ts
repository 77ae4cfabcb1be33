// SPDX-License-Identifier: Apache-2.0
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { type RenderedSeed, renderSeed, type SeedInput } from '../../../src/bootstrap/index.ts';
import { unwrap } from '../../../src/bootstrap/testing/a-seed.ts';
import type { Tally } from './tally.ts';
import { PYTHON, run } from './tools.ts';
import { checkUnits, type GuestRootFile } from './units.ts';

export interface DocumentsCheck {
  readonly name: string;
  readonly input: SeedInput;
  readonly folder: string;
  readonly tally: Tally;
}

const readHostname = join(import.meta.dirname, 'read_hostname.py');
const readYaml = join(import.meta.dirname, 'read_yaml.py');

/** Older releases validate the schema of user-data only. */
let knowsNetworkSchema: boolean | undefined;

export function checkDocuments(check: DocumentsCheck): void {
  const seed = unwrap(renderSeed(check.input));
  checkSchema(check, seed);
  for (const [kind, text] of Object.entries({
    'meta-data': seed.metaData,
    'user-data': seed.userData,
    'network-config': seed.networkConfig,
  })) {
    const parsed = readBack(check, kind, text);
    if (kind === 'user-data') checkFiles(check, parsed);
  }
  checkHostname(check);
}

/** The documents are in the files that `readBack` wrote. */
function checkHostname({ name, input, folder, tally }: DocumentsCheck): void {
  const paths = ['user-data', 'meta-data'].map((kind) => join(folder, `${name}-${kind}.yaml`));
  const { text } = run(PYTHON, [readHostname, ...paths]);
  const isRight = text.trim() === input.machine.name;
  tally.check(`${name}: host name that cloud-init sets`, isRight, () => text);
}

function checkSchema({ name, folder, tally }: DocumentsCheck, seed: RenderedSeed): void {
  const schema = (kind: string, text: string, args: readonly string[]) => {
    const path = join(folder, `${name}-${kind}.yaml`);
    writeFileSync(path, text);
    const ran = run('/usr/bin/cloud-init', ['schema', ...args, '--config-file', path]);
    const isRight = ran.status === 0 && /^Valid /m.test(ran.text) && !/deprecat/i.test(ran.text);
    tally.check(`${name}: cloud-init schema of ${kind}`, isRight, () => ran.text);
  };
  schema('user-data', seed.userData, []);
  knowsNetworkSchema ??= run('/usr/bin/cloud-init', ['schema', '--help']).text.includes(
    'network-config',
  );
  if (knowsNetworkSchema) schema('network-config', seed.networkConfig, ['-t', 'network-config']);
}

/** PyYAML must read the values that were rendered. */
function readBack({ name, folder, tally }: DocumentsCheck, kind: string, text: string): unknown {
  const path = join(folder, `${name}-${kind}.yaml`);
  writeFileSync(path, text);
  const { status, out, text: output } = run(PYTHON, [readYaml, path]);
  const theirs: unknown = status === 0 ? JSON.parse(out.toString()) : undefined;
  const ours: unknown = parse(text, { version: '1.1' });
  tally.check(`${name}: PyYAML of ${kind}`, isDeepStrictEqual(theirs, ours), () => output);
  return theirs;
}

interface WrittenFile extends GuestRootFile {
  readonly encoding?: string;
}

/** Extra files must be identical, scripts must be valid for dash, and embedded configs must be valid YAML. */
function checkFiles(check: DocumentsCheck, parsed: unknown): void {
  const { name, input, folder, tally } = check;
  const files = (parsed as { readonly write_files?: readonly WrittenFile[] })?.write_files ?? [];
  for (const wanted of input.join.files) {
    const found = files.find(({ path }) => path === wanted.path);
    const encoding = found?.encoding === 'b64' ? 'base64' : 'utf8';
    const content = Buffer.from(found?.content ?? '', encoding).toString();
    tally.check(`${name}: file ${wanted.path}`, content === wanted.content, () =>
      JSON.stringify({ wanted: wanted.content, content }),
    );
  }
  for (const { path, content } of files.filter((file) => file.content.startsWith('#!/bin/sh'))) {
    const copy = join(folder, 'script.sh');
    writeFileSync(copy, content);
    const { status, text } = run('/bin/dash', ['-n', copy]);
    tally.check(`${name}: dash parses ${path}`, status === 0, () => text);
  }
  checkUnits(check, files);
}
