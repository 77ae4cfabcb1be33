#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Reports a missing build and refuses an old Node in words, before anything is loaded that an old Node does not have or cannot parse.
import { existsSync } from 'node:fs';

const built = new URL('../dist/main.js', import.meta.url);
if (!existsSync(built)) {
  console.error(
    'pvescaler is not built yet: run npm run build, which also installs the Node that npx pvescaler then uses',
  );
  process.exit(1);
}
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 15)) {
  console.error(
    `pvescaler needs Node 24.15 or newer; this is ${process.version}. ` +
      'Inside a clone, npm run and npx find the right one by themselves.',
  );
  process.exit(1);
}
const { enableCompileCache } = await import('node:module');
enableCompileCache();
const { main } = await import(built.href);
await main();
