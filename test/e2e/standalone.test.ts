// SPDX-License-Identifier: Apache-2.0
// Mode standalone on a real control plane, without a Cluster Autoscaler: pending pods get machines, idle machines are
// drained and deleted, and a pod that fits on no machine is explained.
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type ApiObject,
  type ControlPlane,
  startControlPlane,
  waitUntil,
} from './controlplane/index.ts';
import { startPods, startReplicas } from './support/autoscaler/workload.ts';
import { listNodes } from './support/kube-objects.ts';
import { accountKubeconfig, applyManifests } from './support/manifests.ts';
import {
  countVmTasks,
  listLeftovers,
  listVmsOfPool,
  POOL,
  type SimulatedSite,
  startSite,
  waitUntilReady,
} from './support/simulated-site.ts';

const LIMIT_MS = 240_000;
const SELECTOR = { tier: 'small' };

let plane: ControlPlane;
let site: SimulatedSite;
beforeAll(async () => {
  plane = await startControlPlane();
  await applyManifests(plane);
  site = await startSite({
    plane,
    distribution: 'k3s',
    kubeconfig: await accountKubeconfig(plane),
    onTestFinished: () => undefined,
    config: `    scaleUp: { stabilizationWindow: 1s }
    scaleDown: { unneededTime: 5s, delayAfterAdd: 0s, maxConcurrent: 3 }
`,
  });
  await waitUntilReady(await site.serve('serve'));
});
afterAll(async () => {
  await site.close();
  await plane.stop();
});

interface EventObject extends ApiObject {
  readonly reason: string;
  readonly regarding: { readonly name: string };
}

async function reasonsAbout(name: string): Promise<readonly string[]> {
  const events = await plane.api.list<EventObject>('/apis/events.k8s.io/v1/events');
  return events.filter(({ regarding }) => regarding.name === name).map(({ reason }) => reason);
}

it('creates a machine for each pod that needs one, and deletes them when the pods are gone', async () => {
  const workload = await startPods(plane.api, { name: 'wide', count: 3, nodeSelector: SELECTOR });
  await waitUntil('all pods run', () => workload.running(), LIMIT_MS);
  expect(listVmsOfPool(site, POOL)).toHaveLength(3);
  expect(await reasonsAbout('wide-0')).toContain('TriggeredScaleUp');
  await workload.remove();
  await waitUntil(
    'nothing is left',
    async () => (await listNodes(plane.api)).length === 0,
    LIMIT_MS,
  );
  expect(listLeftovers(site)).toEqual({ vms: [], isos: [] });
  expect(countVmTasks(site)).toEqual({ created: 3, destroyed: 3 });
}, 720_000);

it('moves the pods of an underutilized node to another one, and deletes its machine', async () => {
  const wide = await startPods(plane.api, { name: 'wide', count: 2, nodeSelector: SELECTOR });
  await waitUntil('all pods run', () => wide.running(), LIMIT_MS);
  const small = await startReplicas(plane.api, { name: 'small', count: 2, nodeSelector: SELECTOR });
  await waitUntil('the replicas run', () => small.running(), LIMIT_MS);
  await wide.remove();
  await waitUntil('one machine is left', () => listVmsOfPool(site, POOL).length === 1, LIMIT_MS);
  await waitUntil('the replicas run again', () => small.running(), LIMIT_MS);
  await small.remove();
  await waitUntil(
    'nothing is left',
    async () => (await listNodes(plane.api)).length === 0,
    LIMIT_MS,
  );
}, 720_000);

it('creates nothing for a pod that fits on no machine, and says why', async () => {
  await plane.api.create('/api/v1/namespaces/default/pods', {
    metadata: { name: 'huge' },
    spec: {
      containers: [
        { name: 'app', image: 'example/app', resources: { requests: { memory: '64Gi' } } },
      ],
    },
  });
  await waitUntil(
    'an Event says so',
    async () => (await reasonsAbout('huge')).includes('NotTriggerScaleUp'),
    LIMIT_MS,
  );
  const { exitCode, out } = await site.runCli('explain', 'pod', 'huge');
  expect({ exitCode, out }).toMatchObject({ exitCode: 0, out: expect.stringMatching(/memory/) });
  expect(listVmsOfPool(site, POOL)).toEqual([]);
}, 720_000);
