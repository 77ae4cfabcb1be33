// SPDX-License-Identifier: Apache-2.0
// Normalizes a call to Proxmox or to the API server of Kubernetes: replaces hosts, VM ids, tasks, volumes and names of
// objects, and drops the query.

const API = '/api2/json';

export function callName(method: string, target: string): string {
  const [path = ''] = target.split('?');
  const plain = path
    .replace(API, '')
    .replace(/\/nodes\/[^/]+/, '/nodes/{node}')
    .replace(/\/(qemu)\/\d+/, '/$1/{vmid}')
    .replace(/\/tasks\/[^/]+/, '/tasks/{upid}')
    .replace(/\/content\/.+/, '/content/{volume}')
    .replace(/\/(proxmox[a-z]+)\/[^/]+/, '/$1/{name}');
  return `${method} ${plain}`;
}
