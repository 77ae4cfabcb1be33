// SPDX-License-Identifier: Apache-2.0
// Builds the client with two versions of grpc-go: that of the oldest supported autoscaler, and the newest. The test
// runner calls `setup` before the first suite.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildGoProgram } from '../support/go-program.ts';

const ROOT = join(import.meta.dirname, '../..');
const SOURCE = join(import.meta.dirname, 'client');
const CACHE = join(ROOT, '.cache/interop-go');

/** The autoscaler's own proto file, compiled to descriptors. */
export const DESCRIPTORS = join(CACHE, 'descriptors.binpb');

const MOD_FILES = { first: 'go.first.mod', newest: 'go.mod' } as const;
export type Version = keyof typeof MOD_FILES;

/** With the version that grpc-go reports. */
export const VERSIONS: readonly (readonly [string, Version])[] = [
  ['1.47.0', 'first'],
  ['1.85.0', 'newest'],
];

export function programPath(version: Version): string {
  return join(CACHE, version);
}

/** Throws with instructions when a program cannot be built. */
export function setup(): void {
  const log = (text: string) => void process.stderr.write(`${text}\n`);
  for (const [, version] of VERSIONS) {
    const modFile = MOD_FILES[version];
    buildGoProgram({ source: SOURCE, program: programPath(version), modFile, log });
  }
  const buf = join(ROOT, 'node_modules/.bin/buf');
  const args = ['build', join(ROOT, 'test/interop/protos/c.proto'), '-o', DESCRIPTORS];
  if (spawnSync(buf, args, { stdio: 'inherit' }).status !== 0)
    throw new Error('buf could not read test/interop/protos/c.proto');
}
