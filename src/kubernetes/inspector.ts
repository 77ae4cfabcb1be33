// SPDX-License-Identifier: Apache-2.0
// Reads of `pvescaler doctor`: rights one by one, Nodes and running containers, without a watch.
import type { CallOptions } from '../ports/hypervisor.ts';
import type {
  AccessRight,
  ClusterInspector,
  InspectedNode,
  RunningContainer,
} from '../ports/inspection.ts';
import type { ApiClient } from './api-client.ts';
import { RIGHTS, type Right, SERVICE_ACCOUNT } from './rights.ts';
import { asRecord, asString, translateStatus } from './status.ts';
import { schemaOf } from './store/definitions.ts';
import { RECORD_KINDS } from './store/kinds.ts';

interface InspectorOptions {
  readonly api: ApiClient;
  readonly server: string;
  readonly caPem: string | undefined;
  /** Namespace of the Lease. */
  readonly namespace: string;
  readonly close: () => Promise<void>;
}

const PAGE_SIZE = '500';

export function createClusterInspector(options: InspectorOptions): ClusterInspector {
  const { api, server, caPem, namespace, close } = options;
  return {
    server,
    caPem,
    rights: RIGHTS.flatMap((right) => listAccessRights(right, namespace)),
    recordKinds: RECORD_KINDS.map((kind) => ({ kind: kind.kind, schema: schemaOf(kind) })),
    version: async (call) => {
      const request = {
        path: '/version',
        operation: 'read the version of the API server',
        ...call,
      };
      return asString(asRecord(await api.requestOrThrow(request))['gitVersion']);
    },
    isAllowed: (right, call) => reviewAccess(api, right, call),
    nodes: (call) => listNodes(api, call),
    schema: (groupVersion, kind, call) => readSchema(api, { groupVersion, kind, call }),
    containers: (image, call) => listContainers(api, image, call),
    close,
  };
}

function listAccessRights(right: Right, namespace: string): readonly AccessRight[] {
  const { group, resource, needsPolicy, isForState, why } = right;
  const isOwnNamespace = right.namespace === SERVICE_ACCOUNT.namespace;
  return right.verbs.flatMap((verb) =>
    (right.names ?? [undefined]).map((name) => ({
      verb,
      group,
      resource,
      name,
      namespace: isOwnNamespace ? namespace : right.namespace,
      isOptional: needsPolicy === true,
      isForState: isForState === true,
      why,
    })),
  );
}

async function reviewAccess(
  api: ApiClient,
  { verb, group, resource: full, name, namespace }: AccessRight,
  call: CallOptions,
): Promise<boolean> {
  const [resource = '', subresource] = full.split('/');
  const resourceAttributes = { verb, group, resource, subresource, name, namespace };
  const review = await api.requestOrThrow({
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes },
    },
    operation: `review the right to ${verb} ${full}`,
    ...call,
  });
  return asRecord(asRecord(review)['status'])['allowed'] === true;
}

async function listNodes(api: ApiClient, call: CallOptions): Promise<readonly InspectedNode[]> {
  const nodes = await listAll(api, { path: '/api/v1/nodes', operation: 'list nodes', call });
  return nodes.map((node) => {
    const metadata = asRecord(node['metadata']);
    return {
      name: asString(metadata['name']),
      providerId: asString(asRecord(node['spec'])['providerID']),
      labels: readTexts(metadata['labels']),
    };
  });
}

interface SchemaRequest {
  readonly groupVersion: string;
  readonly kind: string;
  readonly call: CallOptions;
}

/** Every account may read it, unlike the definition. */
async function readSchema(
  api: ApiClient,
  { groupVersion, kind, call }: SchemaRequest,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const operation = `read the schema of ${kind}`;
  const path = `/openapi/v3/apis/${groupVersion}`;
  const result = await api.request({ path, operation, ...call });
  if (!result.ok && result.status.code !== 404) throw translateStatus(result.status, operation);
  if (!result.ok) return undefined;
  const { schemas } = asRecord(asRecord(result.value)['components']);
  return Object.values(asRecord(schemas))
    .map(asRecord)
    .find((schema) =>
      listOf(schema['x-kubernetes-group-version-kind']).some(
        (each) => asRecord(each)['kind'] === kind,
      ),
    );
}

async function listContainers(
  api: ApiClient,
  image: string,
  call: CallOptions,
): Promise<readonly RunningContainer[]> {
  const query = { fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed' };
  const list = { path: '/api/v1/pods', query, operation: 'list pods', call };
  return (await listAll(api, list)).flatMap((pod) => {
    const metadata = asRecord(pod['metadata']);
    const owner = { namespace: asString(metadata['namespace']), pod: asString(metadata['name']) };
    return listOf(asRecord(pod['spec'])['containers'])
      .map(asRecord)
      .filter((container) => asString(container['image']).includes(image))
      .map((container) => ({
        ...owner,
        image: asString(container['image']),
        command: [...listOf(container['command']), ...listOf(container['args'])].map(asString),
      }));
  });
}

interface ListRequest {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly operation: string;
  readonly call: CallOptions;
}

async function listAll(
  api: ApiClient,
  { path, query, operation, call }: ListRequest,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const items: Readonly<Record<string, unknown>>[] = [];
  let next = '';
  do {
    const page = { ...query, limit: PAGE_SIZE, ...(next !== '' && { continue: next }) };
    const list = asRecord(await api.requestOrThrow({ path, query: page, operation, ...call }));
    items.push(...listOf(list['items']).map(asRecord));
    next = asString(asRecord(list['metadata'])['continue']);
  } while (next !== '');
  return items;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function readTexts(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(asRecord(value)).map(([key, text]) => [key, asString(text)]),
  );
}
