// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JsonObject } from '../storage/objects.ts';
import { aWorkload, type SimCluster, startSimCluster } from '../testing/sim-cluster.ts';

const PODS = '/api/v1/namespaces/default/pods';

function start() {
  const cluster = startSimCluster();
  onTestFinished(() => cluster.stop());
  return cluster;
}

function addPod(
  { sim }: SimCluster,
  name: string,
  { labels = {}, ...spec }: JsonObject & { readonly labels?: JsonObject } = {},
) {
  const metadata = { name, namespace: 'default', labels };
  return sim.create('v1', 'pods', { metadata, spec: { containers: [], ...spec } });
}

async function namesOf(cluster: SimCluster, query: string): Promise<readonly string[]> {
  const { body } = await cluster.call('GET', `${PODS}?${query}`);
  return (body['items'] as { metadata: { name: string } }[]).map(({ metadata }) => metadata.name);
}

async function openWatch({ sim }: SimCluster, path: string) {
  const response = await sim.fetch(new Request(`http://sim.example${path}`));
  const reader = response.body!.getReader();
  onTestFinished(() => void reader.cancel());
  return async () => {
    const { value } = await reader.read();
    const lines = new TextDecoder().decode(value).trim().split('\n');
    return lines.map((line) => JSON.parse(line) as { type: string; object: JsonObject });
  };
}

describe('a list', () => {
  it.each([
    ['labelSelector=app%3Dweb', ['a', 'b']],
    ['labelSelector=app!%3Dweb', ['c']],
    ['labelSelector=tier%20in%20(x,y)', ['a', 'b']],
    ['labelSelector=tier%20notin%20(x)', ['b', 'c']],
    ['labelSelector=!app', ['c']],
    ['labelSelector=app,tier%3Dy', ['b']],
    ['fieldSelector=spec.nodeName%3Dn1', ['a']],
    ['fieldSelector=spec.nodeName!%3Dn1,status.phase%3DPending', ['b', 'c']],
    ['fieldSelector=metadata.name%3Db', ['b']],
  ])('selects with %s', async (query, expected) => {
    const cluster = start();
    addPod(cluster, 'a', { labels: { app: 'web', tier: 'x' }, nodeName: 'n1' });
    addPod(cluster, 'b', { labels: { app: 'web', tier: 'y' } });
    addPod(cluster, 'c');
    expect(await namesOf(cluster, query)).toEqual(expected);
  });

  it('refuses fields that are not selectable', async () => {
    const answer = await start().call('GET', `${PODS}?fieldSelector=spec.dnsPolicy%3Dx`);
    expect(answer).toMatchObject({
      status: 400,
      body: { message: 'field label not supported: spec.dnsPolicy' },
    });
  });

  it('is a table when kubectl asks for one', async () => {
    const cluster = start();
    addPod(cluster, 'a', { containers: [{ name: 'main', image: 'x' }] });
    await cluster.advance(125);
    const headers = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
    const response = await cluster.sim.fetch(new Request(`http://sim.example${PODS}`, { headers }));
    expect(await response.json()).toMatchObject({
      kind: 'Table',
      rows: [{ cells: ['a', '0/1', 'Pending', 0, '2m5s', '<none>', '<none>', '<none>', '<none>'] }],
    });
  });

  it.each([
    ['', undefined],
    ['?includeObject=Object', { containers: [{ name: 'main' }] }],
  ])('contains the objects in its rows with the query "%s"', async (query, spec) => {
    const cluster = start();
    addPod(cluster, 'a', { containers: [{ name: 'main', image: 'x' }] });
    const headers = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
    const request = new Request(`http://sim.example${PODS}${query}`, { headers });
    const { rows } = (await (await cluster.sim.fetch(request)).json()) as {
      rows: readonly { object: { metadata: object; spec?: object } }[];
    };
    expect(rows[0]?.object.metadata).toMatchObject({ name: 'a' });
    if (spec === undefined) expect(rows[0]?.object).not.toHaveProperty('spec');
    else expect(rows[0]?.object.spec).toMatchObject(spec);
  });
});

describe('a watch', () => {
  it('shows an object that begins or ceases to be selected as added or deleted', async () => {
    const cluster = start();
    addPod(cluster, 'a', { labels: { app: 'web' } });
    await cluster.advance(1);
    const { body } = await cluster.call('GET', PODS);
    const { resourceVersion } = body['metadata'] as { resourceVersion: string };
    const query = `watch=1&labelSelector=tier%3Dx&resourceVersion=${resourceVersion}`;
    const read = await openWatch(cluster, `${PODS}?${query}`);
    const label = (tier: string | null) =>
      cluster.sim.change('v1', 'pods', {
        metadata: { name: 'a', namespace: 'default', labels: { tier } },
      });
    label('x');
    expect((await read()).map(({ type }) => type)).toEqual(['ADDED']);
    label('y');
    expect((await read()).map(({ type }) => type)).toEqual(['DELETED']);
  });

  it('sends the current state and its end on request', async () => {
    const cluster = start();
    addPod(cluster, 'a');
    const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
    const read = await openWatch(cluster, `${PODS}?${query}&allowWatchBookmarks=true`);
    const events = [...(await read()), ...(await read())];
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'BOOKMARK']);
    expect(events[1]?.object['metadata']).toMatchObject({
      annotations: { 'k8s.io/initial-events-end': 'true' },
    });
  });

  it('from a compacted version ends with 410', async () => {
    const cluster = start();
    addPod(cluster, 'a');
    cluster.sim.compact();
    const read = await openWatch(cluster, `${PODS}?watch=1&resourceVersion=1`);
    expect(await read()).toEqual([
      { type: 'ERROR', object: expect.objectContaining({ code: 410, reason: 'Expired' }) },
    ]);
  });
});

describe('a strategic merge patch', () => {
  const TYPE = 'application/strategic-merge-patch+json';
  const env = [{ name: 'A', value: '1' }];

  it('merges containers and conditions by their key', async () => {
    const cluster = start();
    const containers = [
      { name: 'one', image: 'x', env },
      { name: 'two', image: 'y' },
    ];
    addPod(cluster, 'a', { containers });
    const patch = {
      spec: {
        containers: [
          { name: 'one', image: 'z', env: [{ name: 'B', value: '2' }] },
          { name: 'two', $patch: 'delete' },
        ],
      },
    };
    const { body } = await cluster.call('PATCH', `${PODS}/a`, patch, TYPE);
    expect((body['spec'] as JsonObject)['containers']).toEqual([
      { name: 'one', image: 'z', env: [...env, { name: 'B', value: '2' }] },
    ]);
  });

  it('replaces lists without a key, and orders lists', async () => {
    const cluster = start();
    cluster.addNode('n1', { taints: [{ key: 'a', effect: 'NoSchedule' }] });
    const taints = [{ key: 'b', effect: 'NoSchedule' }];
    const patch = {
      metadata: { finalizers: ['x/b', 'x/a'], '$setElementOrder/finalizers': ['x/a', 'x/b'] },
      spec: { taints },
    };
    const { body } = await cluster.call('PATCH', '/api/v1/nodes/n1', patch, TYPE);
    expect(body).toMatchObject({ metadata: { finalizers: ['x/a', 'x/b'] }, spec: { taints } });
  });
});

describe('a deletion', () => {
  it('of an object with finalizers waits until they are removed', async () => {
    const cluster = start();
    const metadata = { name: 'n1', finalizers: ['x/held'] };
    cluster.sim.create('v1', 'nodes', { metadata });
    const { body } = await cluster.call('DELETE', '/api/v1/nodes/n1');
    expect(body['metadata']).toMatchObject({ deletionTimestamp: expect.any(String) });
    const patch = { metadata: { finalizers: [] } };
    await cluster.call('PATCH', '/api/v1/nodes/n1', patch, 'application/merge-patch+json');
    expect(cluster.sim.list('v1', 'nodes')).toEqual([]);
  });

  it('of a namespace deletes its content and refuses new content meanwhile', async () => {
    const cluster = start();
    cluster.addNode('n1');
    cluster.sim.create('v1', 'namespaces', { metadata: { name: 'shop' } });
    const { spec } = aWorkload('web');
    cluster.sim.create('apps/v1', 'deployments', {
      metadata: { name: 'web', namespace: 'shop' },
      spec,
    });
    await cluster.advance(5);
    await cluster.call('DELETE', '/api/v1/namespaces/shop');
    const refused = await cluster.call('POST', '/api/v1/namespaces/shop/configmaps', {
      metadata: { name: 'late' },
    });
    expect(refused).toMatchObject({ status: 403, body: { reason: 'Forbidden' } });
    await cluster.advance(10);
    expect((await cluster.call('GET', '/api/v1/namespaces/shop')).status).toBe(404);
    expect(cluster.pods()).toEqual([]);
  });

  it('of a selected collection leaves the others', async () => {
    const cluster = start();
    addPod(cluster, 'a', { labels: { app: 'web' } });
    addPod(cluster, 'b');
    await cluster.call('DELETE', `${PODS}?labelSelector=app%3Dweb`);
    expect(await namesOf(cluster, '')).toEqual(['b']);
  });
});

describe('a dry run', () => {
  it('answers as if it had written, and writes nothing', async () => {
    const cluster = start();
    const pod = { metadata: { generateName: 'p-' }, spec: { containers: [] } };
    const created = await cluster.call('POST', `${PODS}?dryRun=All`, pod);
    expect(created).toMatchObject({ status: 201, body: { kind: 'Pod' } });
    addPod(cluster, 'a');
    await cluster.call('DELETE', `${PODS}/a?dryRun=All`);
    expect(await namesOf(cluster, '')).toEqual(['a']);
  });
});

describe('a binding', () => {
  it('assigns a pod to a node once', async () => {
    const cluster = start();
    addPod(cluster, 'a');
    const bind = (name: string) =>
      cluster.call('POST', `${PODS}/a/binding`, { target: { kind: 'Node', name } });
    expect((await bind('n1')).status).toBe(201);
    expect(cluster.pods()[0]?.['spec']).toMatchObject({ nodeName: 'n1' });
    expect(await bind('n2')).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining('pod a is already assigned to node "n1"') },
    });
  });
});

describe('events', () => {
  it('have one storage and two forms', async () => {
    const cluster = start();
    const path = '/api/v1/namespaces/default/events';
    await cluster.call('POST', path, {
      metadata: { name: 'e1' },
      involvedObject: { kind: 'Pod', name: 'a' },
      reason: 'Started',
      message: 'text',
      type: 'Normal',
    });
    const newer = await cluster.call('GET', '/apis/events.k8s.io/v1/namespaces/default/events/e1');
    expect(newer.body).toMatchObject({ note: 'text', regarding: { name: 'a' } });
    const found = await cluster.call('GET', `${path}?fieldSelector=involvedObject.name%3Da`);
    expect(found.body['items']).toMatchObject([{ message: 'text', apiVersion: 'v1', count: 1 }]);
  });
});

describe('discovery', () => {
  it.each(['/api', '/apis', '/api/v1', '/apis/apps', '/apis/apps/v1', '/openapi/v3'])(
    'answers %s',
    async (path) => {
      expect((await start().call('GET', path)).status).toBe(200);
    },
  );

  it('names every resource in its aggregated form', async () => {
    const headers = {
      accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
    };
    const response = await start().sim.fetch(new Request('http://sim.example/apis', { headers }));
    expect(response.headers.get('content-type')).toContain('APIGroupDiscoveryList');
    const text = JSON.stringify(await response.json());
    for (const name of ['deployments', 'jobs', 'poddisruptionbudgets', 'leases']) {
      expect(text).toContain(`"resource":"${name}"`);
    }
  });
});

describe('a review', () => {
  const review = (cluster: SimCluster, path: string, spec: JsonObject = {}) =>
    cluster.call('POST', `/apis/${path}`, { spec });

  it('names the user, what it may do, and whether it may do something', async () => {
    const cluster = start();
    expect(await review(cluster, 'authentication.k8s.io/v1/selfsubjectreviews')).toMatchObject({
      status: 201,
      body: { kind: 'SelfSubjectReview', status: { userInfo: { username: 'kubernetes-admin' } } },
    });
    const rules = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };
    expect(await review(cluster, 'authorization.k8s.io/v1/selfsubjectrulesreviews')).toMatchObject({
      status: 201,
      body: { kind: 'SelfSubjectRulesReview', status: { resourceRules: [rules] } },
    });
    const access = 'authorization.k8s.io/v1/selfsubjectaccessreviews';
    const attributes = { verb: 'create', group: '', resource: 'pods' };
    expect(await review(cluster, access, { resourceAttributes: attributes })).toMatchObject({
      status: 201,
      body: { kind: 'SelfSubjectAccessReview', status: { allowed: true } },
    });
  });
});

describe('what needs a container', () => {
  it.each(['exec', 'attach', 'portforward', 'ephemeralcontainers'])(
    'is refused with the reason: %s',
    async (subresource) => {
      const cluster = start();
      addPod(cluster, 'a');
      expect(await cluster.call('POST', `${PODS}/a/${subresource}`)).toMatchObject({
        status: 405,
        body: { message: 'the simulator runs no containers' },
      });
    },
  );
});
