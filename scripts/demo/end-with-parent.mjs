// SPDX-License-Identifier: Apache-2.0
// Preloaded into the daemon of the demo: a demo that was killed cannot stop its daemon, so the daemon ends with the pipe
// to it, and removes the folder of both.
import { rmSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

function endWithParent() {
  process.stdin.on('error', () => undefined);
  process.stdin.on('close', () => {
    const { DEMO_FOLDER } = process.env;
    if (DEMO_FOLDER) rmSync(DEMO_FOLDER, { recursive: true, force: true });
    process.exit(1);
  });
  process.stdin.resume();
  process.stdin.unref();
}

if (isMainThread) endWithParent();
