// SPDX-License-Identifier: Apache-2.0
// Bundles src/main.ts and its worker thread into dist/. Code splitting puts every lazily imported command and library
// into its own file, so that `pvescaler --help` loads little. It takes well under a second.

import { renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

let esbuild;
try {
  esbuild = createRequire(import.meta.url)('esbuild');
} catch {
  // An installation without development tools contains dist/ and has nothing to build.
  process.exit(0);
}

// A failed build leaves the previous one in place.
const fresh = join(root, `dist.${process.pid}`);
try {
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: { main: 'src/main.ts', 'grpc-worker': 'src/grpc-worker.ts' },
    outdir: fresh,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    chunkNames: 'chunks/[name]-[hash]',
    legalComments: 'linked',
    sourcemap: true,
    sourcesContent: false,
    logLevel: 'warning',
    loader: { '.sql': 'text' },
    // CommonJS packages inside an ES module bundle need these names.
    banner: {
      js: [
        "import { createRequire as __createRequire } from 'node:module';",
        'const require = __createRequire(import.meta.url);',
        'const __filename = import.meta.filename;',
        'const __dirname = import.meta.dirname;',
      ].join('\n'),
    },
  });
} catch {
  rmSync(fresh, { recursive: true, force: true });
  process.exit(1); // esbuild has printed the reason
}
rmSync(join(root, 'dist'), { recursive: true, force: true });
renameSync(fresh, join(root, 'dist'));
