// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JsonObject, SimObject } from '../storage/objects.ts';
import { aTemplate, aWorkload, nodeNameOf, startSimCluster } from '../testing/sim-cluster.ts';
import { RUN_SECONDS_ANNOTATION } from './fake-kubelet.ts';

function start(nodes: readonly string[] = ['n1', 'n2']) {
  const cluster = startSimCluster();
  onTestFinished(() => cluster.stop());
  for (const name of nodes) cluster.addNode(name);
  return cluster;
}

const phases = (pods: readonly SimObject[]) =>
  pods.map(({ status }) => (status as JsonObject)['phase']);
const imagesOf = (pods: readonly SimObject[]) =>
  pods.map(({ spec }) => (spec as { containers: [{ image: string }] }).containers[0].image);

describe('a Deployment', () => {
  it('creates its pods through a ReplicaSet, and they run', async () => {
    const cluster = start();
    cluster.sim.create('apps/v1', 'deployments', aWorkload('web', { replicas: 3 }));
    await cluster.advance(10);
    expect(phases(cluster.pods())).toEqual(['Running', 'Running', 'Running']);
    const [set] = cluster.sim.list('apps/v1', 'replicasets');
    expect(cluster.pods()[0]?.metadata['ownerReferences']).toEqual([
      expect.objectContaining({ kind: 'ReplicaSet', uid: set?.metadata.uid, controller: true }),
    ]);
    const [deployment] = cluster.sim.list('apps/v1', 'deployments');
    expect(deployment?.['status']).toMatchObject({ readyReplicas: 3, observedGeneration: 1 });
  });

  it('replaces its pods by those of a new template, never fewer than it may', async () => {
    const cluster = start();
    const spec = { replicas: 4, strategy: { rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } } };
    cluster.sim.create('apps/v1', 'deployments', aWorkload('web', spec));
    await cluster.advance(10);
    const template = aTemplate('web', { containers: [{ name: 'main', image: 'new' }] });
    cluster.sim.change('apps/v1', 'deployments', {
      metadata: { name: 'web', namespace: 'default' },
      spec: { template },
    });
    let fewest = 4;
    for (let second = 0; second < 60; second += 1) {
      await cluster.advance(1);
      const [deployment] = cluster.sim.list('apps/v1', 'deployments');
      const { readyReplicas } = deployment!['status'] as { readyReplicas: number };
      fewest = Math.min(fewest, readyReplicas);
    }
    expect(imagesOf(cluster.pods())).toEqual(['new', 'new', 'new', 'new']);
    expect(fewest).toBe(3);
  });

  it('scales through its scale subresource', async () => {
    const cluster = start();
    cluster.sim.create('apps/v1', 'deployments', aWorkload('web', { replicas: 1 }));
    await cluster.advance(5);
    const path = '/apis/apps/v1/namespaces/default/deployments/web/scale';
    const { body } = await cluster.call('GET', path);
    expect(body).toMatchObject({ kind: 'Scale', spec: { replicas: 1 }, status: { replicas: 1 } });
    await cluster.call('PUT', path, { ...body, spec: { replicas: 3 } });
    await cluster.advance(5);
    expect(cluster.pods()).toHaveLength(3);
    await cluster.call('PATCH', path, { spec: { replicas: 0 } }, 'application/merge-patch+json');
    await cluster.advance(5);
    expect(cluster.pods()).toEqual([]);
  });

  it('is deleted with its ReplicaSets and pods', async () => {
    const cluster = start();
    cluster.sim.create('apps/v1', 'deployments', aWorkload('web', { replicas: 2 }));
    await cluster.advance(5);
    await cluster.call('DELETE', '/apis/apps/v1/namespaces/default/deployments/web');
    await cluster.advance(5);
    expect(cluster.sim.list('apps/v1', 'replicasets')).toEqual([]);
    expect(cluster.pods()).toEqual([]);
  });

  it('leaves its pods when it is deleted with the policy Orphan', async () => {
    const cluster = start();
    cluster.sim.create('apps/v1', 'deployments', aWorkload('web', { replicas: 2 }));
    await cluster.advance(5);
    const path = '/apis/apps/v1/namespaces/default/deployments/web';
    await cluster.call('DELETE', path, { propagationPolicy: 'Orphan' });
    await cluster.advance(5);
    expect(cluster.sim.list('apps/v1', 'deployments')).toEqual([]);
    expect(cluster.pods()).toHaveLength(2);
  });
});

describe('a ReplicaSet', () => {
  it('replaces a pod that was deleted', async () => {
    const cluster = start();
    cluster.sim.create('apps/v1', 'replicasets', aWorkload('web', { replicas: 2 }));
    await cluster.advance(5);
    const [first] = cluster.pods();
    await cluster.call('DELETE', `/api/v1/namespaces/default/pods/${first?.metadata.name}`);
    await cluster.advance(5);
    expect(phases(cluster.pods())).toEqual(['Running', 'Running']);
    expect(cluster.pods().map(({ metadata }) => metadata.uid)).not.toContain(first?.metadata.uid);
  });

  it('deletes pods without a node first when it is scaled down', async () => {
    const cluster = start(['n1']);
    const template = aTemplate('web', {}, { cpu: '1' });
    cluster.sim.create('apps/v1', 'replicasets', aWorkload('web', { replicas: 3, template }));
    await cluster.advance(5);
    expect(phases(cluster.pods()).sort()).toEqual(['Pending', 'Running', 'Running']);
    const metadata = { name: 'web', namespace: 'default' };
    cluster.sim.change('apps/v1', 'replicasets', { metadata, spec: { replicas: 2 } });
    await cluster.advance(5);
    expect(phases(cluster.pods())).toEqual(['Running', 'Running']);
  });
});

describe('a Job', () => {
  const template = aTemplate(
    'batch',
    { restartPolicy: 'Never' },
    {
      annotations: { [RUN_SECONDS_ANNOTATION]: '20' },
    },
  );

  it('runs its pods in parallel until enough have succeeded', async () => {
    const cluster = start();
    const metadata = { name: 'batch', namespace: 'default' };
    const spec = { completions: 3, parallelism: 2, template };
    cluster.sim.create('batch/v1', 'jobs', { metadata, spec });
    await cluster.advance(10);
    expect(phases(cluster.pods())).toEqual(['Running', 'Running']);
    await cluster.advance(60);
    expect(phases(cluster.pods())).toEqual(['Succeeded', 'Succeeded', 'Succeeded']);
    expect(cluster.sim.list('batch/v1', 'jobs')[0]?.['status']).toMatchObject({
      succeeded: 3,
      conditions: [{ type: 'Complete', status: 'True' }],
    });
  });

  it('counts a success whose pod was deleted since', async () => {
    const cluster = start();
    const metadata = { name: 'batch', namespace: 'default' };
    cluster.sim.create('batch/v1', 'jobs', { metadata, spec: { completions: 2, template } });
    await cluster.advance(30);
    const done = cluster
      .pods()
      .find(({ status }) => (status as JsonObject)['phase'] === 'Succeeded');
    cluster.sim.remove('v1', 'pods', { name: done?.metadata.name ?? '', namespace: 'default' });
    await cluster.advance(60);
    const [job] = cluster.sim.list('batch/v1', 'jobs');
    expect(job?.['status']).toMatchObject({ succeeded: 2 });
    expect(cluster.pods()).toHaveLength(1);
  });
});

describe('a DaemonSet', () => {
  it('runs one pod on every node that its taints and selector allow, new ones included', async () => {
    const cluster = start(['n1']);
    cluster.addNode('other', { taints: [{ key: 'dedicated', effect: 'NoSchedule' }] });
    cluster.sim.create('apps/v1', 'daemonsets', aWorkload('agent'));
    await cluster.advance(5);
    expect(cluster.pods().map(nodeNameOf)).toEqual(['n1']);
    cluster.addNode('n2');
    await cluster.advance(5);
    expect(cluster.pods().map(nodeNameOf).sort()).toEqual(['n1', 'n2']);
  });

  it('runs its pods on cordoned nodes too', async () => {
    const cluster = start(['n1']);
    cluster.sim.change('v1', 'nodes', { metadata: { name: 'n1' }, spec: { unschedulable: true } });
    cluster.sim.create('apps/v1', 'daemonsets', aWorkload('agent'));
    await cluster.advance(5);
    expect(phases(cluster.pods())).toEqual(['Running']);
  });
});

describe('a StatefulSet', () => {
  it('creates its pods in order, with claims that a new pod uses again', async () => {
    const cluster = start();
    cluster.sim.create('storage.k8s.io/v1', 'storageclasses', {
      metadata: { name: 'disk' },
      provisioner: 'csi.example',
      volumeBindingMode: 'WaitForFirstConsumer',
    });
    const claim = {
      metadata: { name: 'data' },
      spec: {
        storageClassName: 'disk',
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
      },
    };
    const spec = { replicas: 2, volumeClaimTemplates: [claim] };
    cluster.sim.create('apps/v1', 'statefulsets', aWorkload('db', spec));
    await cluster.advance(1);
    expect(cluster.pods().map(({ metadata }) => metadata.name)).toEqual(['db-0']);
    await cluster.advance(10);
    expect(phases(cluster.pods())).toEqual(['Running', 'Running']);
    const volumes = () => cluster.sim.list('v1', 'persistentvolumes').length;
    expect(volumes()).toBe(2);
    await cluster.call('DELETE', '/api/v1/namespaces/default/pods/db-1');
    await cluster.advance(10);
    expect(phases(cluster.pods())).toEqual(['Running', 'Running']);
    expect(volumes()).toBe(2);
  });
});

describe('a volume of a pod', () => {
  it('is attached to its node, and detached some time after the pod has ended', async () => {
    const cluster = startSimCluster({ detachMs: 20_000 });
    onTestFinished(() => cluster.stop());
    cluster.addNode('n1');
    cluster.sim.create('storage.k8s.io/v1', 'storageclasses', {
      metadata: { name: 'disk' },
      provisioner: 'csi.example',
    });
    cluster.sim.create('v1', 'persistentvolumeclaims', {
      metadata: { name: 'data', namespace: 'default' },
      spec: { storageClassName: 'disk', resources: { requests: { storage: '1Gi' } } },
    });
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
    cluster.sim.create('v1', 'pods', {
      metadata: { name: 'p1', namespace: 'default' },
      spec: { volumes, containers: [] },
    });
    const attachments = () => cluster.sim.list('storage.k8s.io/v1', 'volumeattachments');
    await cluster.advance(5);
    expect(attachments()).toEqual([
      expect.objectContaining({
        spec: expect.objectContaining({ attacher: 'csi.example', nodeName: 'n1' }),
        status: { attached: true },
      }),
    ]);
    await cluster.call('DELETE', '/api/v1/namespaces/default/pods/p1');
    await cluster.advance(10);
    expect(cluster.pods()).toEqual([]);
    expect(attachments()).toHaveLength(1);
    await cluster.advance(20);
    expect(attachments()).toEqual([]);
  });
});
