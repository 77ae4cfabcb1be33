// SPDX-License-Identifier: Apache-2.0
// A drain on a real cluster: a PodDisruptionBudget blocks it; when the budget allows it, the pod moves to another node,
// and the VM and the Node are deleted.
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type ApiObject,
  type ControlPlane,
  startControlPlane,
  waitUntil,
} from './controlplane/index.ts';
import { findNode, listNodes, type PodObject, readReadiness } from './support/kube-objects.ts';
import { accountKubeconfig, applyManifests } from './support/manifests.ts';
import { POOL, type SimulatedSite, startSite, waitUntilReady } from './support/simulated-site.ts';

const PODS = '/api/v1/namespaces/default/pods';
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const LABELS = { app: 'web' };
const TAINT = 'status-taint.cluster-autoscaler.kubernetes.io/pvescaler-draining';

let plane: ControlPlane;
let site: SimulatedSite;
beforeAll(async () => {
  plane = await startControlPlane();
  await applyManifests(plane);
  const kubeconfig = await accountKubeconfig(plane);
  site = await startSite({ plane, distribution: 'k3s', kubeconfig });
});
afterAll(async () => {
  await site.close();
  await plane.stop();
});

async function createWorkload(): Promise<void> {
  await plane.api.create('/apis/apps/v1/namespaces/default/deployments', {
    metadata: { name: 'web' },
    spec: {
      replicas: 1,
      selector: { matchLabels: LABELS },
      template: {
        metadata: { labels: LABELS },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: 'main', image: 'none.example/none' }],
        },
      },
    },
  });
  await plane.api.create(BUDGETS, {
    metadata: { name: 'web' },
    spec: { maxUnavailable: 0, selector: { matchLabels: LABELS } },
  });
}

/** Ready pods of the workload that are not terminating. */
async function readyPods(): Promise<readonly PodObject[]> {
  const pods = await plane.api.list<PodObject>(PODS);
  return pods.filter(
    (pod) => pod.metadata.deletionTimestamp === undefined && readReadiness(pod) === 'True',
  );
}

interface EventObject extends ApiObject {
  readonly reason: string;
  readonly note: string;
  readonly regarding: { readonly kind: string; readonly name: string };
}

async function eventsOf(node: string, reason: string): Promise<readonly string[]> {
  const events = await plane.api.list<EventObject>('/apis/events.k8s.io/v1/events');
  return events
    .filter((event) => event.regarding.name === node && event.reason === reason)
    .map(({ note }) => note);
}

it('waits for a PodDisruptionBudget, evicts when it allows, and deletes the VM and the Node', async () => {
  await waitUntilReady(await site.serve('serve'));
  expect(await site.runCli('pool', 'scale', POOL, '--to', '2')).toMatchObject({ exitCode: 0 });
  await createWorkload();
  await waitUntil('the pod runs', async () => (await readyPods()).length === 1);
  const [pod] = await readyPods();
  const name = pod?.spec.nodeName ?? '';

  const deletion = site.startCli('cli', 'machine', 'delete', name).ended;
  await waitUntil(
    'the drain is blocked',
    async () => (await eventsOf(name, 'DrainBlocked')).length > 0,
  );
  const blocked = await findNode(plane.api, name);
  expect(blocked?.spec).toMatchObject({
    unschedulable: true,
    taints: expect.arrayContaining([{ key: TAINT, value: 'cordoned', effect: 'NoSchedule' }]),
  });
  expect(await readyPods()).toHaveLength(1);

  await plane.api.callOrThrow('PATCH', `${BUDGETS}/web`, { spec: { maxUnavailable: 1 } });
  const { exitCode, err } = await deletion;
  expect({ exitCode, err }).toMatchObject({
    exitCode: 0,
    err: expect.stringMatching(
      /waiting for default\/web-\S+: PodDisruptionBudget web allows no disruption: it needs 1 healthy pods and has 1 currently/,
    ),
  });
  expect((await listNodes(plane.api)).map(({ metadata }) => metadata.name)).not.toContain(name);
  const vms = site.sim.inspect().vms.filter(({ config }) => config['template'] !== '1');
  expect(vms).toHaveLength(1);
  await waitUntil('the pod runs elsewhere', async () => (await readyPods()).length === 1);
  expect((await readyPods())[0]?.spec.nodeName).not.toBe(name);
});

it('undoes the drain at its timeout, and leaves the Node as it was', async () => {
  await plane.api.callOrThrow('PATCH', `${BUDGETS}/web`, { spec: { maxUnavailable: 0 } });
  const [pod] = await readyPods();
  const name = pod?.spec.nodeName ?? '';
  const { exitCode } = await site.runCli('machine', 'delete', name, '--drain-timeout', '5s');
  expect(exitCode).toBe(15);
  const node = await findNode(plane.api, name);
  expect(node?.spec.unschedulable).toBeUndefined();
  expect(node?.spec.taints ?? []).toEqual([]);
  expect(await eventsOf(name, 'DrainTimedOut')).toHaveLength(1);
  expect((await readyPods()).map(({ metadata }) => metadata.uid)).toEqual([pod?.metadata.uid]);
});
