// SPDX-License-Identifier: Apache-2.0
// Applies the shipped manifests to the control plane of a suite, so that pvescaler has exactly their rights.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { root } from '../../support/pvescaler.ts';
import { type ControlPlane, waitUntil } from '../controlplane/index.ts';

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
  for (const file of files) await applyFile(plane, `deploy/${file}`);
}

/** The kinds and the rights for records in the cluster; resolves when the API server serves the kinds. */
export async function applyStateManifests(plane: ControlPlane): Promise<void> {
  const names = readdirSync(join(root, 'deploy/crds'));
  for (const name of names) await applyFile(plane, `deploy/crds/${name}`);
  await applyFile(plane, 'deploy/kubernetes-state/role.yaml');
  for (const name of names) {
    const plural = name.replace('.yaml', '');
    const path = `/apis/pvescaler.dev/v1alpha1/namespaces/pvescaler/${plural}`;
    await waitUntil(
      `${plural} are served`,
      async () => (await plane.api.call('GET', path)).status === 200,
    );
  }
}

async function applyFile(plane: ControlPlane, file: string): Promise<void> {
  for (const document of parseAllDocuments(readFileSync(join(root, file), 'utf8'))) {
    const manifest = document.toJS() as Manifest;
    const { apiVersion, kind, metadata } = manifest;
    const path = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
    const scope = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
    const plural = PLURALS[kind] ?? `${kind.toLowerCase()}s`;
    await plane.api.create(`${path}${scope}/${plural}`, manifest);
  }
}

/** Path of a kubeconfig of the manifests' service account. */
export async function accountKubeconfig(plane: ControlPlane, server?: string): Promise<string> {
  const token = await plane.serviceAccountToken('pvescaler', 'pvescaler');
  return plane.kubeconfigFor({ token, ...(server !== undefined && { server }) });
}
