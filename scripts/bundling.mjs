// SPDX-License-Identifier: Apache-2.0
// What the bundles of the package and of the single-file binary have in common.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Marks a resolution that the plugin below asked for itself. */
const RESOLVING = Symbol('resolving');
const KUBERNETES_CLIENT = join('node_modules', '@kubernetes', 'client-node');

/**
 * The official Kubernetes client does not declare that its modules have no side effects, so esbuild would keep its 16 MB
 * of generated API classes for the sake of its kubeconfig reader.
 */
const shakeKubernetesClient = {
  name: 'shake-kubernetes-client',
  setup(build) {
    build.onResolve({ filter: /^(@kubernetes\/client-node$|\.)/ }, async (request) => {
      const { path, importer, pluginData, ...rest } = request;
      const isOther = path.startsWith('.') && !importer.includes(KUBERNETES_CLIENT);
      if (isOther || pluginData === RESOLVING) return undefined;
      const found = await build.resolve(path, { ...rest, importer, pluginData: RESOLVING });
      return { ...found, sideEffects: false };
    });
  },
};

export const BUNDLE_OPTIONS = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node24',
  logLevel: 'warning',
  loader: { '.sql': 'text' },
  plugins: [shakeKubernetesClient],
  // Optional native parts of ssh2, which works without them.
  external: ['cpu-features', '*.node'],
  metafile: true,
};

/** The licenses of the packages that the bundle contains, as one text. */
export function thirdPartyLicenses({ outputs }) {
  const folders = new Set();
  for (const { inputs } of Object.values(outputs)) {
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const folder = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
      if (folder !== undefined && bytesInOutput > 0) folders.add(folder);
    }
  }
  return [...folders]
    .sort((a, b) => (a < b ? -1 : 1))
    .map(licenseOf)
    .join(`\n${'-'.repeat(80)}\n\n`);
}

function licenseOf(folder) {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  const { name, version, licenses } = manifest;
  const license = manifest.license ?? licenses?.map(({ type }) => type).join(', ');
  const file = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'license', 'LICENCE', 'LICENSE-MIT']
    .map((one) => join(root, folder, one))
    .find(existsSync);
  const text = file === undefined ? '' : `\n${readFileSync(file, 'utf8').trim()}\n`;
  return `${name} ${version}: ${license}\n${text}`;
}
