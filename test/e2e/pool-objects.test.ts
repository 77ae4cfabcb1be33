// SPDX-License-Identifier: Apache-2.0
// Pools as ProxmoxPool objects on a real API server, managed with the real kubectl: the definition with its defaults and
// rules, server-side apply, scale, status, and deletion that drains.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../support/pvescaler.ts';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { BUILD_TIMEOUT_MS } from './support/command-line-tools.ts';
import { listNodes } from './support/kube-objects.ts';
import { accountKubeconfig, applyManifests } from './support/manifests.ts';
import { PoolKubectl, type PoolObject, POOL_SIZE as SIZE } from './support/pool-kubectl.ts';
import {
  listVmsOfPool,
  POOL,
  type Replica,
  type SimulatedSite,
  startSite,
  waitUntilReady,
} from './support/simulated-site.ts';

const POOLS = '/apis/pvescaler.dev/v1alpha1/namespaces/pvescaler/proxmoxpools';

let plane: ControlPlane;
let site: SimulatedSite;
let replica: Replica;
let kubectl: PoolKubectl;

beforeAll(async () => {
  plane = await startControlPlane();
  kubectl = new PoolKubectl(plane);
  await applyManifests(plane);
  await applyManifests(plane, ['crds/proxmoxpools.yaml']);
  const kubeconfig = await accountKubeconfig(plane);
  site = await startSite({ plane, distribution: 'k3s', kubeconfig, poolObjects: true });
}, BUILD_TIMEOUT_MS);
afterAll(async () => {
  await site.close();
  await plane.stop();
});

async function readyNodesOf(name: string): Promise<number> {
  const nodes = await listNodes(plane.api);
  return nodes.filter(({ metadata }) => metadata.labels?.['autoscaler.proxmox/group'] === name)
    .length;
}

describe('the definition', () => {
  it('explains every key', async () => {
    await waitUntil(
      'the definition is served',
      async () => (await kubectl.attempt('explain', 'pvp.spec')).status === 0,
    );
    expect(await kubectl.run('explain', 'pvp.spec.limits')).toContain(
      'Maximum number of machines; 0 disables',
    );
    expect(await kubectl.run('explain', 'pvp.spec.scaleDown.drainTimeout')).toContain(
      'Maximum duration of a drain',
    );
    expect(await kubectl.run('explain', 'pvp.status.conditions')).toContain('AtCapacity');
  });

  it.each([
    [{}, 'spec.size: Required value'],
    [{ size: SIZE, limits: { min: 3, max: 2 } }, 'min is more than max'],
    [{ size: SIZE, replicas: 3 }, 'an autoscaler manages the pool'],
    [{ size: SIZE, autoscaling: false, replicas: 11 }, 'between limits.min and limits.max'],
    [{ size: SIZE, from: { image: 'noble', netboot: {} } }, 'spec.from'],
    [{ size: SIZE, onStopped: 'explode' }, 'Unsupported value: "explode"'],
    [{ size: SIZE, onbot: true }, 'unknown field "spec.onbot"'],
    [{ size: SIZE, provisionTimeout: 'soon' }, 'spec.provisionTimeout'],
  ])('refuses %j', async (spec, message) => {
    const { status, err } = await kubectl.attempt(
      'create',
      '--dry-run=server',
      '-f',
      kubectl.manifest('refused', spec),
    );
    expect({ status, err }).toEqual({ status: 1, err: expect.stringContaining(message) });
  });

  it('refuses a name that no pool can have', async () => {
    const { err } = await kubectl.attempt(
      'create',
      '--dry-run=server',
      '-f',
      kubectl.manifest('a.b', { size: SIZE }),
    );
    expect(err).toContain('lower-case DNS label');
  });

  it('accepts the example', async () => {
    const path = join(root, 'examples/objects/pools.yaml');
    const out = await kubectl.run('apply', '--server-side', '--dry-run=server', '-f', path);
    expect(out.match(/serverside-applied/g)).toHaveLength(2);
  });

  it('is what doctor expects, with the rights of the manifests', async () => {
    const { out } = await site.runCli('doctor', '--output', 'json');
    const { checks } = JSON.parse(out) as { checks: readonly Record<string, string>[] };
    const ours = checks.filter(({ name, subject = '' }) =>
      /pool-objects|proxmoxpools/.test(`${name} ${subject}`),
    );
    expect(ours.map(({ name, subject, status }) => [name, subject, status])).toEqual([
      ['kubernetes-rights', 'proxmoxpools', 'ok'],
      ['kubernetes-rights', 'proxmoxpools/status', 'ok'],
      ['pool-objects', undefined, 'ok'],
    ]);
  });

  it('is written by pvescaler only where it may', async () => {
    const token = await plane.serviceAccountToken('pvescaler', 'pvescaler');
    const api = plane.apiAs({ token });
    const attempts = [
      api.call('POST', POOLS, { metadata: { name: 'x' }, spec: { size: SIZE } }),
      api.call('DELETE', `${POOLS}/x`),
      api.call('PUT', `${POOLS}/x`, { metadata: { name: 'x' }, spec: { size: SIZE } }),
      api.call('PATCH', `${POOLS}/x/scale`, { spec: { replicas: 1 } }),
      api.call('GET', '/apis/pvescaler.dev/v1alpha1/proxmoxpools'),
    ];
    const statuses = (await Promise.all(attempts)).map(({ status }) => status);
    await api.close();
    expect(statuses).toEqual([403, 403, 403, 403, 403]);
  });

  it('sets static defaults', async () => {
    const path = kubectl.manifest('defaulted', { size: 'any', from: { image: 'noble' } });
    const out = await kubectl.run('create', '--dry-run=server', '-o', 'json', '-f', path);
    const { spec } = JSON.parse(out) as PoolObject;
    expect(spec).toMatchObject({
      autoscaling: true,
      deletionPolicy: 'Delete',
      from: { image: 'noble' },
      limits: { min: 0, max: 10, memory: 0 },
      network: { interfaces: [{ bridge: 'vmbr0', model: 'virtio' }] },
      scaleDown: { drainTimeout: '10m', when: 'underutilized' },
    });
    expect(spec['from']).toEqual({ image: 'noble' });
  });
});

describe('a pool object', () => {
  it('is in use, and applying it again changes nothing', async () => {
    const spec = {
      size: SIZE,
      from: { image: 'noble' },
      autoscaling: false,
      replicas: 2,
      limits: { max: 5 },
      labels: { tier: 'object' },
      taints: ['dedicated=yes:NoSchedule', { key: 'other', effect: 'NoExecute' }],
      memoryOverhead: '128Mi',
    };
    expect(await kubectl.apply('web', spec)).toContain('serverside-applied');
    replica = await site.serve('serve');
    await waitUntilReady(replica);
    await kubectl.untilCondition('web', 'Ready', /^True InUse/);
    await waitUntil('two nodes have joined', async () => (await readyNodesOf('web')) === 2);
    await waitUntil('the status says so', async () => {
      const out = await kubectl.run('get', 'pvp', 'web', '-o', 'wide');
      if (!/^web +2 +2 +2 +2 +false +True +InUse /m.test(out)) throw new Error(out);
      return true;
    });
    const before = await kubectl.read('web');
    expect(before.metadata.finalizers).toEqual(['pvescaler.dev/machines']);
    await kubectl.apply('web', spec);
    expect((await kubectl.read('web')).metadata.resourceVersion).toBe(
      before.metadata.resourceVersion,
    );
    expect(await kubectl.diff('web', spec)).toBe('');
    expect(await kubectl.managers('web')).toEqual(['gitops', 'pvescaler', 'pvescaler status']);
  });

  it('is shown with its conditions and Events', async () => {
    const wide = await kubectl.run('get', 'pvp', '-o', 'wide');
    expect(wide.split('\n', 1)[0]?.trim().split(/ {2,}/)).toEqual([
      'NAME',
      'MIN',
      'MAX',
      'MACHINES',
      'UP',
      'AUTOSCALING',
      'READY',
      'REASON',
      'MESSAGE',
      'AGE',
    ]);
    expect(await kubectl.run('describe', 'pvp', 'web')).toMatch(
      /Type: +Paused[^]*Selector: +autoscaler.proxmox\/group=web/,
    );
    expect((await site.runCli('pools')).out).toMatch(/^web +2 +2 +0 +0 +2-2$/m);
    const selector = await kubectl.run('get', 'pvp', 'web', '-o', 'jsonpath={.status.selector}');
    expect(
      (await kubectl.run('get', 'nodes', '-l', selector, '-o', 'name')).trim().split('\n'),
    ).toHaveLength(2);
  });

  it('follows kubectl scale', async () => {
    expect(await kubectl.run('scale', 'pvp', 'web', '--replicas=3')).toContain('scaled');
    await waitUntil('a third node', async () => (await readyNodesOf('web')) === 3);
    await kubectl.run('scale', 'pvp', 'web', '--replicas=1');
    await waitUntil('one node is left', async () => (await readyNodesOf('web')) === 1);
    await waitUntil(
      'the status says so',
      async () => (await kubectl.read('web')).status?.replicas === 1,
    );
    expect(listVmsOfPool(site, 'web')).toHaveLength(1);
    expect((await kubectl.attempt('scale', 'pvp', 'web', '--replicas=6')).err).toContain(
      'between limits.min',
    );
  });

  it('is not scaled by kubectl while an autoscaler manages it', async () => {
    await kubectl.apply('auto', { size: SIZE, from: { image: 'noble' } });
    await kubectl.untilCondition('auto', 'Ready', /^True InUse/);
    expect((await kubectl.attempt('scale', 'pvp', 'auto', '--replicas=2')).err).toContain(
      'an autoscaler manages the pool',
    );
    await kubectl.run('delete', 'pvp', 'auto', '--timeout=240s');
  });

  it('is left out with the reason on its status, and holds up no other', async () => {
    await kubectl.apply('bad', { size: SIZE, from: { image: 'jammy' } });
    await kubectl.apply(POOL, { size: SIZE, from: { image: 'noble' } });
    await kubectl.untilCondition('bad', 'Ready', /^False Invalid spec\.from\.image: image 'jammy'/);
    await kubectl.untilCondition(POOL, 'Ready', /^False NameInConfigFile/);
    expect(await kubectl.condition('web', 'Ready')).toMatch(/^True/);
    await kubectl.apply('bad', { size: SIZE, from: { image: 'noble' } });
    await kubectl.untilCondition('bad', 'Ready', /^True/);
    await kubectl.run('delete', 'pvp', POOL, 'bad', '--timeout=240s');
  });

  it('writes nothing at rest', async () => {
    const before = await kubectl.read('web');
    await waitUntil('three more passes', async () => {
      const text = await (await fetch(`${replica.health}/metrics`)).text();
      const count = Number(
        /^pvescaler_reconciles_total\{outcome="success"\} (\d+)/m.exec(text)?.[1],
      );
      passes ??= count;
      return count >= passes + 3;
    });
    expect((await kubectl.read('web')).metadata.resourceVersion).toBe(
      before.metadata.resourceVersion,
    );
  });
  let passes: number | undefined;

  it('is gone when its machines are drained and deleted', async () => {
    await kubectl.run('scale', 'pvp', 'web', '--replicas=2');
    await waitUntil('two nodes', async () => (await readyNodesOf('web')) === 2);
    await kubectl.run('delete', 'pvp', 'web', '--timeout=240s');
    expect(listVmsOfPool(site, 'web')).toEqual([]);
    expect(await readyNodesOf('web')).toBe(0);
  });

  it('leaves its machines with deletionPolicy Orphan, and has them again when it is defined again', async () => {
    const spec = {
      size: SIZE,
      from: { image: 'noble' },
      autoscaling: false,
      replicas: 1,
      deletionPolicy: 'Orphan',
    };
    await kubectl.apply('kept', spec);
    await waitUntil('a node', async () => (await readyNodesOf('kept')) === 1);
    const vms = listVmsOfPool(site, 'kept');
    await kubectl.run('delete', 'pvp', 'kept', '--timeout=240s');
    await waitUntil('its machine is kept', () =>
      replica.program.log().includes('pool kept is not in the config'),
    );
    await kubectl.apply('kept', { ...spec, deletionPolicy: 'Delete' });
    await waitUntil(
      'it has its machine',
      async () => (await kubectl.read('kept')).status?.replicas === 1,
    );
    expect(listVmsOfPool(site, 'kept')).toEqual(vms);
    await kubectl.run('delete', 'pvp', 'kept', '--timeout=240s');
    expect(listVmsOfPool(site, 'kept')).toEqual([]);
  });
});
