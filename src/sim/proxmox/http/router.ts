// SPDX-License-Identifier: Apache-2.0
// Maps method and path to an endpoint of the table and the parameters in the path.
import {
  type ApiVersion,
  type EndpointFact,
  endpointsOf,
} from '../../../proxmox/wire-facts/index.ts';

interface TreeNode {
  readonly names: Map<string, TreeNode>;
  param: { readonly name: string; readonly node: TreeNode } | undefined;
  readonly methods: Map<string, EndpointFact>;
}

export interface Route {
  readonly endpoint: EndpointFact;
  readonly pathParams: Readonly<Record<string, string>>;
}

function emptyNode(): TreeNode {
  return { names: new Map(), param: undefined, methods: new Map() };
}

/** Index endpoints that the table lacks. */
const INDEX_ENDPOINTS: readonly EndpointFact[] = [
  '/',
  '/access',
  '/cluster',
  '/access/domains',
  '/nodes/{node}/lxc',
].map((path) => ({
  method: 'GET',
  path,
  name: 'index',
  versions: ['8.4', '9.2'],
  params: path.includes('{node}') ? { node: { type: 'string', format: 'pve-node' } } : {},
  permissions: { user: path === '/access/domains' ? 'world' : 'all' },
  ...(path.includes('{node}') ? { proxyto: 'node' } : {}),
}));

export class Router {
  readonly #root = emptyNode();

  constructor(version: ApiVersion) {
    for (const endpoint of [...INDEX_ENDPOINTS, ...endpointsOf(version)]) this.#add(endpoint);
  }

  find(method: string, path: string): Route | undefined {
    const parts = path.split('/').filter((part) => part !== '');
    const pathParams: Record<string, string> = {};
    let node: TreeNode = this.#root;
    for (let index = 0; index < parts.length; index += 1) {
      const part = parts[index] ?? '';
      const named = node.names.get(part);
      if (named !== undefined) {
        node = named;
        continue;
      }
      if (node.param === undefined) return undefined;
      // A volume name can contain slashes: it takes the rest of the path.
      const isVolume = node.param.name === 'volume';
      pathParams[node.param.name] = isVolume ? parts.slice(index).join('/') : part;
      node = node.param.node;
      if (isVolume) break;
    }
    const endpoint = node.methods.get(method);
    return endpoint === undefined ? undefined : { endpoint, pathParams };
  }

  #add(endpoint: EndpointFact): void {
    let node = this.#root;
    for (const part of endpoint.path.split('/').filter((text) => text !== '')) {
      const name = /^\{(.+)\}$/.exec(part)?.[1];
      if (name === undefined) {
        const next = node.names.get(part) ?? emptyNode();
        node.names.set(part, next);
        node = next;
      } else {
        node.param ??= { name, node: emptyNode() };
        node = node.param.node;
      }
    }
    node.methods.set(endpoint.method, endpoint);
  }
}
