// SPDX-License-Identifier: Apache-2.0
// Applies the shipped manifests to the control plane of a suite, so that pvescaler has exactly their rights.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { root } from '../../support/pvescaler.ts';
import type { ControlPlane } from '../controlplane/index.ts';

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

const PLURALS: Readonly<Record<string, string>> = {
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
};

export async function applyManifests(
  plane: ControlPlane,
  files = ['manifests/rbac.yaml', 'manifests/admission-policy.yaml'],
): Promise<void> {
  for (const file of files) {
    const text = readFileSync(join(root, 'deploy', file), 'utf8');
    for (const document of parseAllDocuments(text)) {
      const manifest = document.toJS() as Manifest;
      const { apiVersion, kind, metadata } = manifest;
      const path = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
      const scope = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
      const plural = PLURALS[kind] ?? `${kind.toLowerCase()}s`;
      await plane.api.create(`${path}${scope}/${plural}`, manifest);
    }
  }
}

/** Path of a kubeconfig of the manifests' service account. */
export async function accountKubeconfig(plane: ControlPlane, server?: string): Promise<string> {
  const token = await plane.serviceAccountToken('pvescaler', 'pvescaler');
  return plane.kubeconfigFor({ token, ...(server !== undefined && { server }) });
}
