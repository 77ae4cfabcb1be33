// SPDX-License-Identifier: Apache-2.0
// Normalizes a call to Proxmox: replaces hosts, VM ids, tasks and volumes, and drops the query.

const API = '/api2/json';

export function callName(method: string, target: string): string {
  const [path = ''] = target.split('?');
  const plain = path
    .replace(API, '')
    .replace(/\/nodes\/[^/]+/, '/nodes/{node}')
    .replace(/\/(qemu)\/\d+/, '/$1/{vmid}')
    .replace(/\/tasks\/[^/]+/, '/tasks/{upid}')
    .replace(/\/content\/.+/, '/content/{volume}');
  return `${method} ${plain}`;
}
