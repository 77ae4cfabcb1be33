// SPDX-License-Identifier: Apache-2.0
// What one machine costs the API server over its life, from the audit log: mode standalone, with the records in the cluster.
import { expect, it, onTestFinished } from 'vitest';
import { startControlPlane, waitUntil } from './controlplane/index.ts';
import { listNodesOfPool } from './support/kube-objects.ts';
import { accountKubeconfig, applyManifests, applyStateManifests } from './support/manifests.ts';
import { POOL, startSite, waitUntilReady } from './support/simulated-site.ts';

const LIMIT_MS = 240_000;
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const MACHINES = '/apis/pvescaler.dev/v1alpha1/namespaces/pvescaler/proxmoxmachines';
const AUDIT_RULES = [
  {
    level: 'Metadata',
    users: ['system:serviceaccount:pvescaler:pvescaler'],
    verbs: ['create', 'update', 'patch', 'delete', 'deletecollection'],
  },
  { level: 'None' },
];

interface Machine {
  readonly status: { readonly phase: string };
}

it('a machine costs seven writes to its object, at most three to the state of its pool, and no request', async () => {
  const plane = await startControlPlane({ auditRules: AUDIT_RULES });
  onTestFinished(() => plane.stop());
  await applyManifests(plane);
  await applyStateManifests(plane);
  const site = await startSite({
    plane,
    distribution: 'k3s',
    kubeconfig: await accountKubeconfig(plane),
    stores: 'kubernetes',
    config: `    scaleUp: { stabilizationWindow: 1s }
    scaleDown: { unneededTime: 5s, delayAfterAdd: 0s }`,
  });
  onTestFinished(() => site.close());
  await waitUntilReady(await site.serve('a'));
  const labels = { app: 'web' };
  const resources = { requests: { cpu: '1500m', memory: '1Gi' } };
  const containers = [{ name: 'app', image: 'example/app', resources }];
  await plane.api.create(DEPLOYMENTS, {
    metadata: { name: 'web' },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers } },
    },
  });
  const countNodes = async () => (await listNodesOfPool(plane.api, POOL)).length;
  await waitUntil('a machine has joined', async () => (await countNodes()) === 1, LIMIT_MS);
  await plane.api.patch(`${DEPLOYMENTS}/web`, { spec: { replicas: 0 } });
  await waitUntil('it is removed', async () => (await countNodes()) === 0, LIMIT_MS);
  const phases = async () => {
    const { items } = await plane.api.callOrThrow<{ items: readonly Machine[] }>('GET', MACHINES);
    return items.map(({ status }) => status.phase);
  };
  await waitUntil('its VM is gone', async () => (await phases()).join() === 'gone', LIMIT_MS);
  const counts: Record<string, number> = {};
  for (const { objectRef } of plane.readAuditLog())
    counts[objectRef.resource] = (counts[objectRef.resource] ?? 0) + 1;
  // Its object is deleted an hour later.
  expect(counts).toMatchObject({ proxmoxmachines: 6 });
  expect(counts).not.toHaveProperty('proxmoxmachinerequests');
  expect(counts['proxmoxpoolstates']).toBeLessThanOrEqual(3);
});
