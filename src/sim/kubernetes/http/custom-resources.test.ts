// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JsonObject } from '../storage/objects.ts';
import { type SimCluster, startSimCluster } from '../testing/sim-cluster.ts';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const GADGETS = '/apis/example.com/v1/namespaces/default/gadgets';
const MERGE = 'application/merge-patch+json';

interface DefinitionOptions {
  readonly scope?: string;
  readonly spec?: JsonObject;
  readonly versions?: readonly string[];
}

/** Stored in the first version. */
function aDefinition({
  scope = 'Namespaced',
  spec = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  versions = ['v1'],
}: DefinitionOptions = {}) {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'gadgets.example.com' },
    spec: {
      group: 'example.com',
      scope,
      names: { plural: 'gadgets', kind: 'Gadget', shortNames: ['gd'], categories: ['all'] },
      versions: versions.map((name, index) => ({
        name,
        served: true,
        storage: index === 0,
        schema: {
          openAPIV3Schema: { type: 'object', description: 'A gadget.', properties: { spec } },
        },
      })),
    },
  };
}

function start(options?: DefinitionOptions) {
  const cluster = startSimCluster();
  onTestFinished(() => cluster.stop());
  if (options !== undefined) cluster.sim.install([aDefinition(options)]);
  return cluster;
}

function addGadget({ sim }: SimCluster, name: string, metadata: JsonObject = {}) {
  const named = { name, namespace: 'default', ...metadata };
  return sim.create('example.com/v1', 'gadgets', { metadata: named, spec: { a: 1 } });
}

async function openWatch({ sim }: SimCluster, path: string) {
  const response = await sim.fetch(new Request(`http://sim.example${path}`));
  const reader = response.body!.getReader();
  onTestFinished(() => void reader.cancel());
  return async () => {
    const { value, done } = await reader.read();
    if (done) return [];
    const lines = new TextDecoder().decode(value).trim().split('\n');
    return lines.map((line) => JSON.parse(line) as { type: string; object: JsonObject });
  };
}

describe('a CustomResourceDefinition', () => {
  it('that is invalid serves nothing', async () => {
    const cluster = start();
    const definition = aDefinition();
    const answer = await cluster.call('POST', DEFINITIONS, {
      ...definition,
      metadata: { name: 'other.example.com' },
      spec: { ...definition.spec, versions: [{ name: 'v1', served: true, storage: false }] },
    });
    expect(answer).toMatchObject({ status: 422, body: { reason: 'Invalid' } });
    const causes = (answer.body['details'] as { causes: { field: string }[] }).causes;
    expect(causes.map(({ field }) => field)).toEqual([
      'metadata.name',
      'spec.versions[0].schema.openAPIV3Schema',
      'spec.versions',
    ]);
    expect(() => cluster.sim.list('example.com/v1', 'gadgets')).toThrow('not found');
  });

  it('can be applied, and a dry run serves nothing', async () => {
    const cluster = start();
    const path = `${DEFINITIONS}/gadgets.example.com?fieldManager=a`;
    const apply = (query: string) =>
      cluster.call('PATCH', `${path}${query}`, aDefinition(), 'application/apply-patch+yaml');
    expect((await apply('&dryRun=All')).status).toBe(201);
    expect(() => cluster.sim.list('example.com/v1', 'gadgets')).toThrow('not found');
    expect((await apply('')).status).toBe(201);
    expect((await apply('')).status).toBe(200);
    expect(cluster.sim.list('example.com/v1', 'gadgets')).toEqual([]);
  });

  it('that changes validates new objects, and tolerates unchanged values of old ones', async () => {
    const cluster = start({
      spec: { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'string' } } },
    });
    addGadget(cluster, 'old');
    const limited = { type: 'integer', minimum: 5 };
    const { spec } = aDefinition({
      spec: { type: 'object', properties: { a: limited, b: { type: 'string', default: 'x' } } },
    });
    await cluster.call('PATCH', `${DEFINITIONS}/gadgets.example.com`, { spec }, MERGE);
    expect(() => addGadget(cluster, 'new')).toThrow('should be greater than or equal to 5');
    const patch = (body: JsonObject) => cluster.call('PATCH', `${GADGETS}/old`, body, MERGE);
    expect(await patch({ metadata: { labels: { a: '1' } } })).toMatchObject({
      status: 200,
      body: { spec: { a: 1, b: 'x' } },
    });
    expect((await patch({ spec: { a: 2 } })).status).toBe(422);
  });

  it('appears in discovery and explains its fields', async () => {
    const cluster = start({
      spec: { type: 'object', properties: { a: { type: 'integer', description: 'Text.' } } },
      versions: ['v1', 'v1beta1'],
    });
    const group = await cluster.call('GET', '/apis/example.com');
    expect(group.body['versions']).toEqual([
      { groupVersion: 'example.com/v1', version: 'v1' },
      { groupVersion: 'example.com/v1beta1', version: 'v1beta1' },
    ]);
    const { body } = await cluster.call('GET', '/apis/example.com/v1');
    expect(body['resources']).toMatchObject([
      { name: 'gadgets', singularName: 'gadget', shortNames: ['gd'], categories: ['all'] },
    ]);
    const headers = { accept: 'application/json;v=v2;as=APIGroupDiscoveryList' };
    const request = new Request('http://sim.example/apis', { headers });
    expect(await (await cluster.sim.fetch(request)).text()).toContain('"resource":"gadgets"');
    const openApi = await cluster.call('GET', '/openapi/v3/apis/example.com/v1');
    expect(openApi.body['components']).toMatchObject({
      schemas: {
        'com.example.v1.Gadget': {
          description: 'A gadget.',
          properties: { spec: { properties: { a: { description: 'Text.' } } } },
        },
      },
    });
  });

  it('deletes its objects, waits for their finalizers, and refuses new objects meanwhile', async () => {
    const cluster = start({});
    addGadget(cluster, 'free');
    addGadget(cluster, 'held', { finalizers: ['example.com/held'] });
    const read = await openWatch(cluster, `${GADGETS}?watch=1`);
    const initial = [...(await read()), ...(await read())];
    expect(initial.map(({ type }) => type)).toEqual(['ADDED', 'ADDED']);
    await cluster.call('DELETE', `${DEFINITIONS}/gadgets.example.com`);
    expect(() => addGadget(cluster, 'late')).toThrow(
      'create not allowed while custom resource definition is terminating',
    );
    const left = cluster.sim.list('example.com/v1', 'gadgets');
    expect(left.map(({ metadata }) => metadata.name)).toEqual(['held']);
    await cluster.call('PATCH', `${GADGETS}/held`, { metadata: { finalizers: null } }, MERGE);
    expect(cluster.sim.list('apiextensions.k8s.io/v1', 'customresourcedefinitions')).toEqual([]);
    const response = await cluster.sim.fetch(new Request(`http://sim.example${GADGETS}`));
    expect(response.status).toBe(404);
    const events: string[] = [];
    for (let seen = await read(); seen.length > 0; seen = await read()) {
      events.push(...seen.map(({ type }) => type));
    }
    expect(events).toEqual(['DELETED', 'MODIFIED', 'DELETED']);
  });
});

describe('custom objects', () => {
  it('share one increasing resource version with all other resources', async () => {
    const cluster = start({});
    const versions = [
      addGadget(cluster, 'a'),
      cluster.addNode('n1'),
      addGadget(cluster, 'b'),
      cluster.sim.change('example.com/v1', 'gadgets', {
        metadata: { name: 'a', namespace: 'default' },
        spec: { a: 2 },
      }),
    ].map(({ metadata }) => Number(metadata.resourceVersion));
    expect(versions).toEqual(versions.toSorted((one, other) => one - other));
    expect(new Set(versions).size).toBe(4);
  });

  it('are watched in the order of their versions', async () => {
    const cluster = start({});
    const { body } = await cluster.call('GET', GADGETS);
    const { resourceVersion } = body['metadata'] as { resourceVersion: string };
    const read = await openWatch(cluster, `${GADGETS}?watch=1&resourceVersion=${resourceVersion}`);
    addGadget(cluster, 'a');
    await cluster.call('PATCH', `${GADGETS}/a`, { spec: { a: 2 } }, MERGE);
    await cluster.call('DELETE', `${GADGETS}/a`);
    const events = [...(await read()), ...(await read()), ...(await read())];
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
    const versions = events.map(({ object }) =>
      Number((object['metadata'] as { resourceVersion: string }).resourceVersion),
    );
    expect(versions).toEqual(versions.toSorted((one, other) => one - other));
  });

  it('are the same in every served version', async () => {
    const cluster = start({ scope: 'Cluster', versions: ['v2', 'v1'] });
    const created = await cluster.call('POST', '/apis/example.com/v1/gadgets', {
      apiVersion: 'example.com/v1',
      kind: 'Gadget',
      metadata: { name: 'a' },
      spec: { a: 1 },
    });
    expect(created).toMatchObject({ status: 201, body: { apiVersion: 'example.com/v1' } });
    const { body } = await cluster.call('GET', '/apis/example.com/v2/gadgets/a');
    expect(body).toEqual({ ...created.body, apiVersion: 'example.com/v2' });
    const applied = await cluster.call(
      'PATCH',
      '/apis/example.com/v1/gadgets/a?fieldManager=b',
      { apiVersion: 'example.com/v1', kind: 'Gadget', metadata: { name: 'a' }, spec: { b: 2 } },
      'application/apply-patch+yaml',
    );
    expect(applied).toMatchObject({ status: 200, body: { spec: { a: 1, b: 2 } } });
  });

  it('without a status subresource count every change outside metadata as a generation', async () => {
    const cluster = start({});
    addGadget(cluster, 'a');
    const patch = async (body: JsonObject) =>
      (await cluster.call('PATCH', `${GADGETS}/a`, body, MERGE)).body['metadata'];
    expect(await patch({ metadata: { labels: { a: '1' } } })).toMatchObject({ generation: 1 });
    expect(await patch({ spec: { a: 2 } })).toMatchObject({ generation: 2 });
    const status = await cluster.call('GET', `${GADGETS}/a/status`);
    expect(status).toMatchObject({ status: 404, body: { reason: 'NotFound' } });
  });

  it('go with their namespace and with their owner', async () => {
    const cluster = start({});
    cluster.sim.create('v1', 'namespaces', { metadata: { name: 'shop' } });
    addGadget(cluster, 'inside', { namespace: 'shop' });
    const { apiVersion, kind, metadata } = addGadget(cluster, 'owner');
    const { name, uid } = metadata;
    addGadget(cluster, 'owned', { ownerReferences: [{ apiVersion, kind, name, uid }] });
    addGadget(cluster, 'free');
    await cluster.call('DELETE', '/api/v1/namespaces/shop');
    await cluster.call('DELETE', `${GADGETS}/owner`);
    await cluster.advance(10);
    const left = cluster.sim.list('example.com/v1', 'gadgets');
    expect(left.map((one) => one.metadata.name)).toEqual(['free']);
  });

  it('keep no unknown field, and a strict patch with one is invalid', async () => {
    const cluster = start({ spec: { type: 'object', properties: { a: { type: 'integer' } } } });
    addGadget(cluster, 'a');
    const patch = (query: string) =>
      cluster.call('PATCH', `${GADGETS}/a${query}`, { spec: { b: 1 } }, MERGE);
    expect(await patch('')).toMatchObject({ status: 200, body: { spec: { a: 1 } } });
    expect(await patch('?fieldValidation=Strict')).toMatchObject({
      status: 422,
      body: { message: expect.stringContaining('unknown field "spec.b"') },
    });
  });

  it('can be denied to a user', async () => {
    const cluster = start({});
    cluster.sim.access.deny({ verb: 'list', group: 'example.com', resource: 'gadgets' });
    expect((await cluster.call('GET', GADGETS)).status).toBe(403);
  });

  it.each([
    [{ metadata: { name: 'a' } }, 400, "Object 'Kind' is missing"],
    [
      { apiVersion: 'example.com/v9', kind: 'Gadget', metadata: { name: 'a' } },
      400,
      'does not match the expected API version (example.com/v1)',
    ],
    [
      {
        apiVersion: 'example.com/v1',
        kind: 'Gadget',
        metadata: { name: 'a', namespace: 'kube-system' },
      },
      400,
      'the namespace of the provided object does not match the namespace sent on the request',
    ],
    [
      {
        apiVersion: 'example.com/v1',
        kind: 'Gadget',
        metadata: { name: 'a', resourceVersion: '5' },
      },
      500,
      'resourceVersion should not be set on objects to be created',
    ],
    [
      { apiVersion: 'example.com/v1', kind: 'Other', metadata: { name: 'a' } },
      422,
      'kind: Invalid value: "Other": must be Gadget',
    ],
    [
      { apiVersion: 'example.com/v1', kind: 'Gadget', metadata: { name: 'A_1' } },
      422,
      'a lowercase RFC 1123 subdomain must consist of',
    ],
  ])('are refused with the body %j', async (body, status, message) => {
    const answer = await start({}).call('POST', GADGETS, body);
    expect(answer).toMatchObject({ status, body: { message: expect.stringContaining(message) } });
  });
});
