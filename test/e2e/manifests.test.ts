// SPDX-License-Identifier: Apache-2.0
// The manifests of the server on a real API server: strict field validation accepts them, and the pod passes the
// restricted Pod Security profile.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SERVICE_ACCOUNT } from '../../src/kubernetes/index.ts';
import { type Manifest, readManifests, readRepoFile } from '../deploy/manifests.ts';
import { type ControlPlane, startControlPlane } from './controlplane/index.ts';

const STRICT = '?fieldValidation=Strict';
const NAMESPACE = `/api/v1/namespaces/${SERVICE_ACCOUNT.namespace}`;

let plane: ControlPlane;

function collectionPath({ apiVersion, kind }: Manifest): string {
  const group = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
  return `${group}/namespaces/${SERVICE_ACCOUNT.namespace}/${kind.toLowerCase()}s`.replace(
    /ys$/,
    'ies',
  );
}

async function createManifest(manifest: Manifest): Promise<unknown> {
  const { status, body } = await plane.api.call(
    'POST',
    collectionPath(manifest) + STRICT,
    manifest,
  );
  return status === 201 ? status : body;
}

beforeAll(async () => {
  plane = await startControlPlane();
  const [, account] = readManifests('deploy/manifests/rbac.yaml');
  const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const metadata = { name: SERVICE_ACCOUNT.namespace, labels: restricted };
  await plane.api.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata });
  await plane.api.create(`${NAMESPACE}/serviceaccounts`, account);
});
afterAll(() => plane.stop());

describe('the manifests of the server', () => {
  it.each([
    'server/service.yaml',
    'server/deployment.yaml',
    'server/network-policy.yaml',
    'server/proxmox-secret.example.yaml',
    'persistent-state/claim.yaml',
    'cluster-autoscaler/cloud-config.yaml',
  ])('%s passes strict field validation', async (name) => {
    for (const manifest of readManifests(`deploy/${name}`))
      expect(await createManifest(manifest)).toBe(201);
  });

  it('are refused when a field is misspelled', async () => {
    const [service] = readManifests('deploy/server/service.yaml');
    const wrong = { ...service, metadata: { name: 'wrong' }, spec: { prots: [] } };
    expect(await createManifest(wrong as never)).toMatchObject({ code: 400 });
  });

  it('create a pod that the restricted profile admits', async () => {
    const [deployment] = readManifests('deploy/server/deployment.yaml');
    const { spec, metadata } = deployment?.['spec'].template ?? {};
    const pod = (name: string, changed: object): Manifest => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, name },
      spec: { ...spec, ...changed },
    });
    expect(await createManifest(pod('as-it-is', {}))).toBe(201);
    expect(
      await createManifest(pod('with-the-network-of-its-host', { hostNetwork: true })),
    ).toMatchObject({
      code: 403,
    });
  });

  it('include a config that fits into a ConfigMap', async () => {
    const data = { 'config.yaml': readRepoFile('deploy/server/config.yaml') };
    const metadata = { name: 'pvescaler-config' };
    expect(await createManifest({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data })).toBe(201);
  });
});
