// SPDX-License-Identifier: Apache-2.0
// `npm run control-plane -- FOLDER`: a real control plane on this machine until Ctrl-C, for trying things out. Writes an
// administrator's kubeconfig to FOLDER/admin.conf once the API server is ready.
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setup } from './build.ts';
import { startControlPlane } from './index.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  process.stderr.write('usage: npm run control-plane -- FOLDER\n');
  process.exit(2);
}
setup();
const plane = await startControlPlane();
const kubeconfig = join(folder, 'admin.conf');
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    rmSync(kubeconfig, { force: true });
    void plane.stop().then(() => process.exit(0));
  });
}
mkdirSync(folder, { recursive: true });
copyFileSync(plane.kubeconfig, kubeconfig);
process.stdout.write(
  `API server: ${plane.server}\nkubeconfig: ${kubeconfig}\nCtrl-C ends it; nothing is kept\n`,
);
