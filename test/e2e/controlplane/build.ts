// SPDX-License-Identifier: Apache-2.0
// Builds the programs of a control plane from Go modules, once per version, into .cache/; or uses those in the folder
// KUBEBUILDER_ASSETS. The test runner calls `setup` before the first suite.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { buildGoProgram } from '../../support/go-program.ts';

const HERE = import.meta.dirname;
const CACHE = join(HERE, '../../../.cache/controlplane');

const VERSION = 'v1.36.2';
const STAMP = 'k8s.io/component-base/version';
const LINKER_FLAGS = [
  '-s -w',
  `-X ${STAMP}.gitVersion=${VERSION} -X ${STAMP}.gitMajor=1 -X ${STAMP}.gitMinor=36`,
].join(' ');

const KUBERNETES = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
export type ControlPlaneProgram = 'etcd' | (typeof KUBERNETES)[number];

/** Path of a program, which may not be built yet. */
export function programPath(name: ControlPlaneProgram): string {
  return join(process.env['KUBEBUILDER_ASSETS'] ?? CACHE, name);
}

/** Throws with a hint when a program is missing and cannot be built. */
export function setup(): void {
  const say = (text: string) => void process.stderr.write(`${text}\n`);
  const given = process.env['KUBEBUILDER_ASSETS'];
  if (given !== undefined) return requirePrograms(given, say);
  const build = (name: ControlPlaneProgram, source: string, target: string) =>
    buildGoProgram({
      source: join(HERE, source),
      program: programPath(name),
      target,
      linkerFlags: name === 'etcd' ? '-s -w' : LINKER_FLAGS,
      log: say,
    });
  build('etcd', 'etcd', 'go.etcd.io/etcd/server/v3');
  for (const name of KUBERNETES) build(name, 'kubernetes', `k8s.io/kubernetes/cmd/${name}`);
}

/** A folder of setup-envtest is not enough: it has no scheduler and no controller manager. */
function requirePrograms(folder: string, say: (text: string) => void): void {
  const missing = ['etcd', ...KUBERNETES].filter((name) => !existsSync(join(folder, name)));
  if (missing.length > 0)
    throw new Error(
      `KUBEBUILDER_ASSETS (${folder}) lacks ${missing.join(', ')}; add them, or unset the variable to build them`,
    );
  say(`using the control plane programs in ${folder}`);
}
