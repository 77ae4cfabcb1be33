// SPDX-License-Identifier: Apache-2.0
// kubectl, kubeadm and kubelet of the test control plane's version, built from their Go module into .cache/.
import { join } from 'node:path';
import { buildGoProgram } from './go-program.ts';

const VERSION = 'v1.36.2';
const STAMP = 'k8s.io/component-base/version';

/** Returns the folder of the programs. */
export function buildKubernetesTools(
  ...names: readonly ('kubectl' | 'kubeadm' | 'kubelet')[]
): string {
  const folder = join(import.meta.dirname, '../../.cache/kubernetes-tools');
  for (const name of names) {
    buildGoProgram({
      source: join(import.meta.dirname, 'kubernetes-tools'),
      program: join(folder, name),
      target: `k8s.io/kubernetes/cmd/${name}`,
      linkerFlags: `-s -w -X ${STAMP}.gitVersion=${VERSION} -X ${STAMP}.gitMajor=1 -X ${STAMP}.gitMinor=36`,
      log: (text) => void process.stderr.write(`${text}\n`),
    });
  }
  return folder;
}
