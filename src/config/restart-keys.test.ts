// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { compareConfigs } from './restart-keys.ts';
import { loadText } from './testing/load-text.ts';

const REGION = 'endpoints: ["https://pve:8006"], token: { id: "a@pve!b", secretEnv: T }';
const POOL = 'from: { image: noble }, size: { cpu: 2, memory: 2Gi, disk: 20Gi }, join: none';

function fileOf({ region = '', pools = ['{ name: a, limits: { max: 3 } }'], more = '' }) {
  const list = pools.map((pool) => `  - ${pool.replace('{', `{ ${POOL},`)}\n`).join('');
  const result = loadText(`
proxmox: { lab: { ${REGION}${region} } }
images: { noble: { url: "https://images.example/noble.img", unverified: true } }
${more}
pools:
${list}`);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.file;
}

const A = '{ name: a, limits: { max: 3 } }';
const B = '{ name: b, limits: { max: 1 } }';

it('finds nothing in a config that is the same, written differently', () => {
  expect(compareConfigs(fileOf({}), fileOf({ more: '# a comment\nlog: { level: info }' }))).toEqual(
    {
      keys: [],
      needRestart: [],
    },
  );
});

it('names pools that come, go and change, none of which needs a restart', () => {
  const before = fileOf({ pools: [A, B] });
  const after = fileOf({
    pools: ['{ name: c }', '{ name: a, limits: { max: 4 }, labels: { x: y } }'],
  });
  expect(compareConfigs(before, after)).toEqual({
    keys: ['pools.a.limits.max', 'pools.a.labels.x', 'pools.b', 'pools.c'],
    needRestart: [],
  });
  expect(compareConfigs(fileOf({ pools: [A, B] }), fileOf({ pools: [B, A] })).keys).toEqual([
    'pools',
  ]);
});

it.each([
  [{ more: 'mode: externalgrpc\ngrpc: { insecure: true }' }, ['grpc.insecure', 'mode']],
  [{ more: 'state: { path: /var/other.db }' }, ['state.path']],
  [{ more: 'state: { kubernetes: { namespace: a } }' }, ['state.kubernetes']],
  [{ more: 'cluster: { name: other }' }, ['cluster.name']],
  [{ more: 'http: { health: off }' }, ['http.health']],
  [{ more: 'log: { level: debug }' }, ['log.level']],
  [{ region: ', tls: { insecure: true }' }, ['proxmox.lab.tls.insecure']],
  [{ region: ', requestTimeout: 40s' }, ['proxmox.lab.requestTimeout']],
  [
    { region: ` }, other: { ${REGION.replace('pve:', 'attic:')}, vmIds: 2000-2100` },
    ['proxmox.other'],
  ],
])('%j needs a restart', (change, keys) => {
  const { needRestart } = compareConfigs(fileOf({}), fileOf(change));
  expect(needRestart.toSorted()).toEqual(keys);
  expect(compareConfigs(fileOf(change), fileOf({})).needRestart.toSorted()).toEqual(keys);
});

it.each([
  [{ region: ', vmIds: 1300-1400' }, 'proxmox.lab.vmIds'],
  [{ region: ', storage: { disks: [local-lvm, fast] }' }, 'proxmox.lab.storage.disks'],
  [{ region: ', limits: { createsPerHost: 5 }' }, 'proxmox.lab.limits.createsPerHost'],
  [{ more: 'intervals: { reconcile: 10s }' }, 'intervals.reconcile'],
  [{ more: 'guards: { okTotalUnreadyCount: 9 }' }, 'guards.okTotalUnreadyCount'],
  [{ more: 'cleanup: { lostAfter: 9m }' }, 'cleanup.lostAfter'],
  [{ more: 'pricing: { vcpuHour: 1 }' }, 'pricing.vcpuHour'],
])('%j applies without a restart', (change, key) => {
  expect(compareConfigs(fileOf({}), fileOf(change))).toEqual({ keys: [key], needRestart: [] });
});
