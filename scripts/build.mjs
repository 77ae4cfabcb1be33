// SPDX-License-Identifier: Apache-2.0
// Bundles src/main.ts and its worker thread into dist/. Code splitting puts every lazily imported command and library
// into its own file, so that `pvescaler --help` loads little. It takes well under a second.

import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { BUNDLE_OPTIONS, root, thirdPartyLicenses } from './bundling.mjs';

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
  const { metafile } = await esbuild.build({
    ...BUNDLE_OPTIONS,
    entryPoints: { main: 'src/main.ts', 'grpc-worker': 'src/grpc-worker.ts' },
    outdir: fresh,
    splitting: true,
    format: 'esm',
    chunkNames: 'chunks/[name]-[hash]',
    legalComments: 'none', // all licenses are in one file
    sourcemap: true,
    sourcesContent: false,
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
  writeFileSync(join(fresh, 'THIRD-PARTY-LICENSES.txt'), thirdPartyLicenses(metafile));
} catch (error) {
  rmSync(fresh, { recursive: true, force: true });
  if (error.errors === undefined) throw error;
  process.exit(1); // esbuild has printed the reason
}
rmSync(join(root, 'dist'), { recursive: true, force: true });
renameSync(fresh, join(root, 'dist'));
