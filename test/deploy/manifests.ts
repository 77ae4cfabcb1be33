// SPDX-License-Identifier: Apache-2.0
// Reads the files in deploy/.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { root } from '../support/pvescaler.ts';

/** Unvalidated YAML: a missing field is `undefined`, and the test that reads it fails. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Loose = any;

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [key: string]: Loose;
}

export function readRepoFile(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

export function readYaml(path: string): Loose {
  return parse(readRepoFile(path));
}

export function readManifests(path: string): readonly Manifest[] {
  return parseAllDocuments(readRepoFile(path)).map((document) => document.toJS() as Manifest);
}

export function readManifest(path: string, kind: string, name?: string): Manifest {
  const found = readManifests(path).filter(
    (one) => one.kind === kind && (name === undefined || one.metadata.name === name),
  );
  if (found.length !== 1 || found[0] === undefined)
    throw new Error(
      `${path} contains ${found.length} objects of kind ${kind} ${name ?? ''}, expected 1`,
    );
  return found[0];
}

/** All YAML files below deploy/, relative to it, without the templates of the chart, which are no YAML. */
export function listDeployFiles(): readonly string[] {
  return readdirSync(join(root, 'deploy'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.yaml') && !name.startsWith('chart/templates/'))
    .toSorted();
}
