// SPDX-License-Identifier: Apache-2.0
// Usage: npm run binary [-- FILE]
// Writes pvescaler and Node as one executable (default: build/pvescaler), for the platform this runs on.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import esbuild from 'esbuild';
import { inject } from 'postject';
import { BUNDLE_OPTIONS, root, thirdPartyLicenses } from './bundling.mjs';

/** The text by which Node finds out that it contains an application. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

const target = resolve(process.argv[2] ?? join(root, 'build', 'pvescaler'));
const work = mkdtempSync(join(tmpdir(), 'pvescaler-binary-'));

/** One CommonJS file: Node runs nothing else from inside an executable. */
function bundle(name, contents) {
  return esbuild.build({
    ...BUNDLE_OPTIONS,
    stdin: { contents, resolveDir: root },
    outfile: join(work, `${name}.cjs`),
    format: 'cjs',
    // Only the file of the worker thread is found by it, which an executable reads from its assets.
    define: { 'import.meta.url': 'undefined' },
  });
}

try {
  const { metafile } = await bundle('main', "import { main } from './src/main.ts'; void main();");
  await bundle('grpc-worker', "import './src/grpc-worker.ts';");
  writeFileSync(join(work, 'licenses'), thirdPartyLicenses(metafile));
  const blob = join(work, 'blob');
  const config = {
    main: join(work, 'main.cjs'),
    output: blob,
    disableExperimentalSEAWarning: true,
    assets: {
      'grpc-worker': join(work, 'grpc-worker.cjs'),
      'third-party-licenses': join(work, 'licenses'),
    },
  };
  writeFileSync(join(work, 'config.json'), JSON.stringify(config));
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--experimental-sea-config', join(work, 'config.json')],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`node could not prepare the application: ${stderr}`);
  mkdirSync(dirname(target), { recursive: true });
  const unfinished = `${target}.${process.pid}`;
  copyFileSync(process.execPath, unfinished);
  chmodSync(unfinished, 0o755);
  await inject(unfinished, 'NODE_SEA_BLOB', readFileSync(blob), { sentinelFuse: FUSE });
  renameSync(unfinished, target);
  console.log(`wrote ${target}`);
} finally {
  rmSync(work, { recursive: true, force: true });
}
