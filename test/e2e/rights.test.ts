// SPDX-License-Identifier: Apache-2.0
// The manifests on a real API server: their service account can do what pvescaler needs, and nothing else.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  KubernetesStore,
  openKubernetesCluster,
  RIGHTS,
  SERVICE_ACCOUNT,
} from '../../src/kubernetes/index.ts';
import { BOOTSTRAP_GROUPS } from '../../src/model/bootstrap-groups.ts';
import { RECONCILE_LEASE } from '../../src/model/lease.ts';
import type { Cluster } from '../../src/ports/cluster.ts';
import { type PvescalerError, Unreachable } from '../../src/ports/errors.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { aMachine, anIntent, aPoolState } from '../../src/ports/fakes/sample-records.ts';
import type { Collection } from '../../src/ports/store.ts';
import type { Transport, TransportRequest } from '../../src/ports/transport.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { openClusterTransport } from '../kubernetes/cluster-bench.ts';
import { type Api, type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { applyManifests, applyStateManifests } from './support/manifests.ts';

const SECRETS = '/api/v1/namespaces/kube-system/secrets';

let plane: ControlPlane;
let cluster: Cluster;
let api: Api;
const errors: PvescalerError[] = [];

beforeAll(async () => {
  plane = await startControlPlane({ nodeMonitorGraceSeconds: 600 });
  await applyManifests(plane);
  await applyStateManifests(plane);
  const token = await plane.serviceAccountToken(SERVICE_ACCOUNT.namespace, SERVICE_ACCOUNT.name);
  api = plane.apiAs({ token });
  cluster = await openKubernetesCluster({
    source: { kind: 'kubeconfig', path: plane.kubeconfigFor({ token }) },
    openTransport: openClusterTransport,
    clock: systemClock,
    random: systemRandom,
    onError: (error) => errors.push(error),
  });
  // A new policy takes a moment to become active.
  await waitUntil('the admission policy is active', async () => {
    const answer = await api.call('POST', `${SECRETS}?dryRun=All`, secret({}, { type: 'Opaque' }));
    return answer.status !== 201;
  });
});
afterAll(async () => {
  await cluster.close();
  await api.close();
  await plane.stop();
});

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function inSeconds(seconds: number): string {
  return new Date(Date.now() + seconds * 1_000).toISOString().replace(/\.\d+Z/, 'Z');
}

function secret(data: Readonly<Record<string, string>>, change: object = {}): object {
  const all = { 'token-id': 'abcdef', 'token-secret': '0123456789abcdef', ...data };
  return {
    metadata: { name: 'bootstrap-token-abcdef' },
    type: 'bootstrap.kubernetes.io/token',
    data: Object.fromEntries(Object.entries(all).map(([key, text]) => [key, base64(text)])),
    ...change,
  };
}

async function createNode(name: string) {
  const { metadata } = await plane.api.create('/api/v1/nodes', { metadata: { name } });
  return { name, uid: metadata.uid };
}

async function createPod(name: string, nodeName: string) {
  const { metadata } = await plane.api.create('/api/v1/namespaces/default/pods', {
    metadata: { name },
    spec: { nodeName, containers: [{ name: 'main', image: 'none.example/none' }] },
  });
  return { namespace: 'default', name, uid: metadata.uid };
}

describe('the service account of the manifests', () => {
  it('can do everything the adapter does', async () => {
    expect(await cluster.uid()).toBe(plane.uid);
    const node = await createNode('worker-1');
    const pod = await createPod('web-1', 'worker-1');
    const view = await cluster.refresh();
    expect(view.nodes.map(({ name }) => name)).toEqual(['worker-1']);
    expect(view.pods.map(({ name }) => name)).toEqual(['web-1']);
    expect([...(view.workloads?.namespaces.keys() ?? [])]).toContain('kube-system');
    await cluster.declareNode(node, {
      labels: { 'node-role.kubernetes.io/worker': '' },
      annotations: { a: 'b' },
      providerId: 'proxmox://lab/100',
    });
    await cluster.changeNode(node, {
      addTaints: [{ key: 'k', value: '', effect: 'NoSchedule' }],
      unschedulable: true,
    });
    expect(await cluster.podsOn('worker-1')).toMatchObject([pod]);
    await plane.api.create('/apis/storage.k8s.io/v1/volumeattachments', {
      metadata: { name: 'a1' },
      spec: {
        attacher: 'csi.example',
        nodeName: 'worker-1',
        source: { persistentVolumeName: 'v1' },
      },
    });
    const claim = { namespace: 'default', name: 'none' };
    expect(await cluster.attachedVolumes('worker-1', [claim])).toEqual(['v1']);
    expect(await cluster.evict(pod)).toEqual({ outcome: 'evicted' });
    expect(await cluster.evict({ ...pod, uid: node.uid })).toEqual({ outcome: 'already-gone' });
    await cluster.deleteNode(node);
    const event = { type: 'Normal', reason: 'Test', message: 'twice' } as const;
    await cluster.emit({ ...event, regarding: { kind: 'Node', name: 'worker-1' } });
    await cluster.emit({ ...event, regarding: { kind: 'Node', name: 'worker-1' } });
    const lease = await cluster.acquireLease({
      name: RECONCILE_LEASE,
      holder: 'a',
      durationMs: 15_000,
    });
    await cluster.releaseLease(await cluster.renewLease(lease, 15_000));
    expect(errors).toEqual([]);
  });

  it('can do everything the store does, and every right for it is used', async () => {
    const used = new Set<string>();
    const clock = systemClock;
    const token = await plane.serviceAccountToken(SERVICE_ACCOUNT.namespace, SERVICE_ACCOUNT.name);
    const connection = await openClusterTransport({
      caPem: plane.caPem,
      isInsecure: false,
      serverName: undefined,
    });
    const transport: Transport = {
      close: () => connection.close(),
      request: async (request) => {
        used.add(rightOf(request));
        const headers = { ...request.headers, authorization: `Bearer ${token}` };
        const response = await connection.request({ ...request, headers });
        // The store then reads whether the object was created.
        const isLost = request.method === 'POST' && request.url.includes('pvescaler.dev');
        if (isLost) throw new Unreachable('KUBERNETES_UNREACHABLE', 'the response was lost');
        return response;
      },
    };
    const store = new KubernetesStore({
      transport,
      server: plane.server,
      namespace: SERVICE_ACCOUNT.namespace,
      local: new MemoryStore({ clock }),
      clock,
      random: systemRandom,
    });
    await store.open();
    await store.identity({ id: 'an-id' });
    await store.identity({ id: 'an-id', clusterUid: plane.uid });
    for (const [collection, key, value] of [
      [store.machines, aMachine().id, aMachine()],
      [store.intents, 'i', anIntent({ id: 'i' })],
      [store.pools, 'workers', aPoolState()],
    ] as const)
      await createReplaceRemove(collection as never, key, value as never);
    await store.synchronize();
    const granted = RIGHTS.filter(({ isForState }) => isForState === true).flatMap(
      ({ resource, verbs }) => verbs.map((verb) => `${verb} ${resource}`),
    );
    // A watch may begin later than the writes.
    await waitUntil('every right is used', () => {
      const unused = granted.filter((right) => !used.has(right));
      if (unused.length > 0) throw new Error(unused.join());
      return true;
    });
    await store.close();
    expect([...used].toSorted()).toEqual([...new Set(granted)].toSorted());
  });

  it.each(Object.keys(BOOTSTRAP_GROUPS) as (keyof typeof BOOTSTRAP_GROUPS)[])(
    'can create bootstrap tokens for %s with a lifetime of up to an hour',
    async (kind) => {
      const groups = [BOOTSTRAP_GROUPS[kind]];
      for (const lifetimeMs of [60_000, 3_590_000]) {
        const { token } = await cluster.createBootstrapToken({
          machine: `${kind}-${lifetimeMs}`,
          description: 'for a test',
          lifetimeMs,
          groups,
          usages: ['authentication', 'signing'],
        });
        const joining = plane.apiAs({ token });
        const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
        // The API server learns of the token by a watch.
        const review = await waitUntil('the token is known', () =>
          joining.callOrThrow<{ status: { userInfo: object } }>('POST', path, {}),
        );
        await joining.close();
        expect(review.status.userInfo).toMatchObject({
          username: `system:bootstrap:${token.slice(0, 6)}`,
          groups: expect.arrayContaining(groups),
        });
        await cluster.deleteBootstrapTokens(`${kind}-${lifetimeMs}`);
        const name = `bootstrap-token-${token.slice(0, 6)}`;
        expect((await plane.api.call('GET', `${SECRETS}/${name}`)).status).toBe(404);
      }
    },
  );

  it('has exactly the rights of the table', async () => {
    for (const namespace of ['default', 'kube-system', SERVICE_ACCOUNT.namespace]) {
      const path = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';
      const { status } = await api.callOrThrow<{ status: { resourceRules: readonly Rule[] } }>(
        'POST',
        path,
        { spec: { namespace } },
      );
      const own = status.resourceRules.filter(
        ({ apiGroups }) => !apiGroups.every(isGrantedToAllUsers),
      );
      const expected = RIGHTS.filter((right) => [undefined, namespace].includes(right.namespace));
      expect(own.flatMap(formatRule).sort()).toEqual(
        expected
          .flatMap(({ group, resource, verbs, names }) =>
            formatRule({
              apiGroups: [group],
              resources: [resource],
              verbs,
              ...(names && { resourceNames: names }),
            }),
          )
          .sort(),
      );
    }
  });
});

/** `update proxmoxmachines/status`, as RBAC names it. */
function rightOf({ method, url }: Pick<TransportRequest, 'method' | 'url'>): string {
  const { pathname, searchParams } = new URL(url);
  const [, , resource = '', name, subresource] =
    /\/namespaces\/([^/]+)\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(pathname) ?? [];
  const verbs = { POST: 'create', PUT: 'update', DELETE: 'delete', PATCH: 'patch' } as const;
  const read = searchParams.has('watch') ? 'watch' : name === undefined ? 'list' : 'get';
  const verb = method === 'GET' ? read : verbs[method];
  return `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`;
}

async function createReplaceRemove<T>(
  collection: Collection<T>,
  key: string,
  value: T,
): Promise<void> {
  const created = await collection.create(key, value);
  await collection.remove(await collection.replace(created, value));
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** Every authenticated user may review its own permissions. */
function isGrantedToAllUsers(group: string): boolean {
  return ['authorization.k8s.io', 'authentication.k8s.io'].includes(group);
}

function formatRule({
  apiGroups,
  resources,
  resourceNames = ['*'],
  verbs,
}: Rule): readonly string[] {
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      resourceNames.flatMap((name) => verbs.map((verb) => `${verb} ${group}/${resource} ${name}`)),
    ),
  );
}

type Attempt = readonly [Parameters<Api['call']>[0], string];

const LEASES = '/apis/coordination.k8s.io/v1/namespaces';
const FORBIDDEN: readonly Attempt[] = [
  ['GET', SECRETS],
  ['GET', `${SECRETS}/some`],
  ['PATCH', `${SECRETS}/some`],
  ['PUT', `${SECRETS}/some`],
  ['DELETE', SECRETS],
  ['GET', '/api/v1/secrets'],
  ['POST', '/api/v1/namespaces/default/secrets'],
  ['POST', '/api/v1/namespaces/pvescaler/secrets'],
  ['POST', '/api/v1/nodes'],
  ['PUT', '/api/v1/nodes/some'],
  ['DELETE', '/api/v1/nodes'],
  ['PATCH', '/api/v1/nodes/some/status'],
  ['GET', '/api/v1/nodes/some/proxy/'],
  ['POST', '/api/v1/namespaces/default/pods'],
  ['DELETE', '/api/v1/namespaces/default/pods/some'],
  ['PATCH', '/api/v1/namespaces/default/pods/some'],
  ['POST', '/api/v1/namespaces/default/pods/some/binding'],
  ['GET', '/api/v1/namespaces/default/pods/some/log'],
  ['POST', '/api/v1/namespaces/default/pods/some/exec?command=sh'],
  ['GET', '/api/v1/namespaces/default'],
  ['POST', '/api/v1/namespaces'],
  ['GET', '/api/v1/namespaces/kube-system/configmaps'],
  ['GET', '/api/v1/namespaces/kube-system/configmaps/cluster-info'],
  ['PATCH', '/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt'],
  ['GET', '/apis/events.k8s.io/v1/events'],
  ['GET', `${LEASES}/pvescaler/leases`],
  ['GET', `${LEASES}/pvescaler/leases/some`],
  ['DELETE', `${LEASES}/pvescaler/leases/pvescaler-reconcile`],
  ['POST', `${LEASES}/kube-system/leases`],
  ['GET', `${LEASES}/kube-node-lease/leases`],
  ['GET', '/api/v1/namespaces/pvescaler/configmaps'],
  ['GET', '/api/v1/namespaces/pvescaler/configmaps/some'],
  ['DELETE', '/api/v1/namespaces/pvescaler/configmaps/pvescaler-identity'],
  ['POST', '/api/v1/namespaces/default/configmaps'],
  ['GET', '/apis/pvescaler.dev/v1alpha1/proxmoxmachines'],
  ['POST', '/apis/pvescaler.dev/v1alpha1/namespaces/default/proxmoxmachines'],
  ['PUT', '/apis/pvescaler.dev/v1alpha1/namespaces/pvescaler/proxmoxmachines/some'],
  ['DELETE', '/apis/pvescaler.dev/v1alpha1/namespaces/pvescaler/proxmoxmachines'],
  ['GET', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'],
  ['POST', '/api/v1/namespaces/pvescaler/serviceaccounts/pvescaler/token'],
  ['POST', '/api/v1/namespaces/kube-system/serviceaccounts/default/token'],
  ['GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles'],
  ['POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'],
  ['GET', '/apis/certificates.k8s.io/v1/certificatesigningrequests'],
  ['PATCH', '/apis/certificates.k8s.io/v1/certificatesigningrequests/some/approval'],
  [
    'DELETE',
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/pvescaler-bootstrap-tokens',
  ],
  ['GET', '/apis/apps/v1/deployments'],
  ['DELETE', '/apis/apps/v1/namespaces/default/daemonsets/some'],
  ['PATCH', '/api/v1/persistentvolumes/some'],
  ['PATCH', '/apis/policy/v1/namespaces/default/poddisruptionbudgets/some'],
  ['DELETE', '/apis/storage.k8s.io/v1/volumeattachments/some'],
];

describe('the service account is refused', () => {
  it.each(FORBIDDEN)('%s %s', async (method, path) => {
    const body = method === 'GET' ? undefined : { metadata: { name: 'some' } };
    expect((await api.call(method, path, body)).status).toBe(403);
  });

  it('to create a Node by server-side apply, with any uid', async () => {
    const path = '/api/v1/nodes/none?fieldManager=pvescaler';
    const about = { apiVersion: 'v1', kind: 'Node' };
    const uid = '0a1b2c3d-0000-4000-8000-000000000000';
    const plain = await api.apply(path, { ...about, metadata: { name: 'none' } });
    const named = await api.apply(path, { ...about, metadata: { name: 'none', uid } });
    expect([plain.status, named.status]).toEqual([403, 409]);
    expect((await plane.api.call('GET', '/api/v1/nodes/none')).status).toBe(404);
  });

  it('to impersonate a user', async () => {
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const resourceAttributes = { verb: 'impersonate', resource: 'users', name: 'admin' };
    const answer = await api.callOrThrow<{ status: { allowed: boolean } }>('POST', path, {
      spec: { resourceAttributes },
    });
    expect(answer.status.allowed).toBe(false);
  });
});

describe('the admission policy', () => {
  const refused: readonly (readonly [string, object])[] = [
    ['another type', secret({ expiration: inSeconds(600) }, { type: 'Opaque' })],
    ['the token of a service account', secret({}, { type: 'kubernetes.io/service-account-token' })],
    ['no expiration', secret({})],
    [
      'no data',
      { metadata: { name: 'bootstrap-token-abcdef' }, type: 'bootstrap.kubernetes.io/token' },
    ],
    ['more than an hour', secret({ expiration: inSeconds(3_660) })],
    ['a day', secret({ expiration: inSeconds(86_400) })],
    ['the year 9999', secret({ expiration: '9999-12-31T23:59:59Z' })],
    ['an expiration with an offset', secret({ expiration: '2026-01-01T00:00:00-12:00' })],
    ['an invalid expiration', secret({ expiration: 'never' })],
    ['20 letters that are not a timestamp', secret({ expiration: 'AAAA-AA-AATAA:AA:AAZ' })],
    ['characters outside the decoding table', secret({ expiration: '~~~~-~~-~~T~~:~~:~~Z' })],
  ];

  it.each(refused)('refuses a Secret with %s', async (_what, body) => {
    const answer = await api.call('POST', `${SECRETS}?dryRun=All`, body);
    expect([403, 422]).toContain(answer.status);
  });

  it('gives the reason of a refusal', async () => {
    const body = secret({ expiration: inSeconds(3_660) });
    const answer = await api.call('POST', `${SECRETS}?dryRun=All`, body);
    expect(JSON.stringify(answer.body)).toContain('lasts an hour at most');
  });

  it('admits tokens of up to an hour, for every digit of the timestamp', async () => {
    for (let step = 0; step < 60; step += 1) {
      const body = secret({ expiration: inSeconds(step * 59 + 61) });
      expect((await api.call('POST', `${SECRETS}?dryRun=All`, body)).status).toBe(201);
    }
  });

  const foreign: readonly (readonly [string, string, object])[] = [
    [
      'another type',
      'other',
      { type: 'Opaque', labels: { 'app.kubernetes.io/managed-by': 'pvescaler' } },
    ],
    ['no label', 'bootstrap-token-aaaaa1', {}],
    [
      'the label of another program',
      'bootstrap-token-aaaaa2',
      { labels: { 'app.kubernetes.io/managed-by': 'kubeadm' } },
    ],
  ];

  it.each(foreign)('refuses to delete a Secret with %s', async (_what, name, change) => {
    const { labels, ...rest } = { labels: {}, ...change };
    const data = { expiration: inSeconds(600), 'token-id': name.slice(-6) };
    await plane.api.create(SECRETS, secret(data, { metadata: { name, labels }, ...rest }));
    expect([403, 422]).toContain((await api.call('DELETE', `${SECRETS}/${name}`)).status);
    expect((await plane.api.call('GET', `${SECRETS}/${name}`)).status).toBe(200);
  });

  it('does not apply to other users', async () => {
    const body = secret({}, { metadata: { name: 'unrelated' }, type: 'Opaque' });
    expect((await plane.api.call('POST', `${SECRETS}?dryRun=All`, body)).status).toBe(201);
  });
});
