// SPDX-License-Identifier: Apache-2.0
// The code that buf generates from proto/, for the list of generated files.
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';

const GENERATED = 'src/externalgrpc/gen';

interface GeneratedProtobufFile {
  readonly path: string;
  readonly text: string;
}

export async function generateProtobufFiles(
  root: string,
): Promise<readonly GeneratedProtobufFile[]> {
  const folder = await mkdtemp(join(tmpdir(), 'pvescaler-proto-'));
  try {
    // The template names its output relative to the folder given by --output.
    await promisify(execFile)('buf', ['generate', '--output', join(folder, 'proto')], {
      cwd: join(root, 'proto'),
    });
    const output = join(folder, GENERATED);
    const names = (await readdir(output, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => relative(output, join(entry.parentPath, entry.name)));
    return await Promise.all(
      names.sort().map(async (name) => ({
        path: join(GENERATED, name),
        text: await readFile(join(output, name), 'utf8'),
      })),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}
