// SPDX-License-Identifier: Apache-2.0
// The contract of the Kubernetes store on a real API server, its CustomResourceDefinitions, and kubectl with its objects.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openKubernetesStore, RESOURCE_DEFINITIONS } from '../../src/kubernetes/index.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { storeContract } from '../../src/ports/contract/store.contract.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { aDrain, aMachine, aMachineId, anIntent } from '../../src/ports/fakes/sample-records.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { openClusterTransport } from '../kubernetes/cluster-bench.ts';
import { COMMAND_TIMEOUT_MS, root } from '../support/pvescaler.ts';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { BUILD_TIMEOUT_MS, buildKubectl } from './support/command-line-tools.ts';

const GROUP = '/apis/pvescaler.dev/v1alpha1';

let plane: ControlPlane;
let kubectlPath: string;
let namespaces = 0;

beforeAll(async () => {
  kubectlPath = buildKubectl();
  plane = await startControlPlane({ nodeMonitorGraceSeconds: 600 });
}, BUILD_TIMEOUT_MS);
afterAll(() => plane.stop());

function kubectl(...args: readonly string[]): string {
  const options = ['--kubeconfig', plane.kubeconfig, '--cache-dir', join(plane.folder, 'cache')];
  const limits = { encoding: 'utf8', timeout: COMMAND_TIMEOUT_MS } as const;
  const run = spawnSync(kubectlPath, [...args, ...options], limits);
  return `${run.stdout}${run.stderr}`;
}

function open(namespace: string, local: MemoryStore, clock: Clock) {
  return openKubernetesStore({
    source: { kind: 'kubeconfig', path: plane.kubeconfig },
    openTransport: openClusterTransport,
    runProgram: () => Promise.reject(new Error('no plugin is expected')),
    namespace,
    local,
    clock,
    random: systemRandom,
  });
}

async function newNamespace(): Promise<string> {
  namespaces += 1;
  const name = `store-${namespaces}`;
  await plane.api.create('/api/v1/namespaces', { metadata: { name } });
  return name;
}

it('says how to install missing definitions', async () => {
  const opened = open('default', new MemoryStore({ clock: systemClock }), systemClock);
  await expect(opened).rejects.toMatchObject({
    code: 'STORE_NOT_INSTALLED',
    message: expect.stringContaining('kubectl apply -f deploy/crds'),
  });
});

describe('with the definitions', () => {
  beforeAll(async () => {
    expect(kubectl('apply', '-f', join(root, 'deploy/crds'))).toContain('created');
    await waitUntil('the kinds are served', async () => {
      const lists = RESOURCE_DEFINITIONS.map(({ metadata }) =>
        plane.api.call('GET', `${GROUP}/${metadata.name.split('.')[0]}`),
      );
      return (await Promise.all(lists)).every(({ status }) => status === 200);
    });
  });

  it('stores the definitions as they are in the files', () => {
    expect(kubectl('diff', '-f', join(root, 'deploy/crds'))).toBe('');
  });

  it('explains every field', async () => {
    await waitUntil('kubectl knows the kinds', () => kubectl('explain', 'pvm').includes('FIELDS'));
    const text = kubectl('explain', 'pvm.status', '--recursive');
    expect(text).toContain('phaseSince\t<string>');
    expect(kubectl('explain', 'proxmoxmachine')).toContain('pvescaler machine delete');
    expect(kubectl('explain', 'pvm.status.drain.state')).toContain('waiting-for-volumes');
    expect(kubectl('explain', 'pvps.status.allocatable.cpuMilli')).toContain('CPU');
    expect(kubectl('explain', 'pvmr.spec.requestedBy')).toContain('cluster-autoscaler');
  });

  it('prints machines and requests', async () => {
    const namespace = await newNamespace();
    const store = await open(namespace, new MemoryStore({ clock: systemClock }), systemClock);
    const id = aMachineId();
    const machine = aMachine({ requestedAt: systemClock.now(), phaseSince: systemClock.now() });
    const created = await store.machines.create(id, machine);
    await store.machines.replace(created, {
      ...machine,
      phase: 'ready',
      nodeName: 'workers-1',
      placement: {
        region: 'lab',
        host: 'pve1',
        vmId: 1250,
        name: 'workers-1',
        diskStorage: 'local-lvm',
        addresses: [],
      },
    });
    await store.drains.create(id, aDrain());
    await store.intents.create('intent-1', anIntent());
    const row = (kind: string, ...options: readonly string[]) =>
      kubectl('get', kind, '-n', namespace, ...options)
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/\s{2,}/).map((cell) => cell.replace(/^\d+s$/, 'AGE')));
    expect(row('pvm')).toEqual([
      ['NAME', 'POOL', 'PHASE', 'HOST', 'VM ID', 'NODE', 'AGE'],
      [id, 'workers', 'ready', 'pve1', '1250', 'workers-1', 'AGE'],
    ]);
    const wide = row('pvm', '-o', 'wide');
    expect(wide[0]?.slice(7)).toEqual(['IN PHASE', 'REGION', 'CPU', 'MEMORY', 'DRAIN', 'FAILURE']);
    expect(wide[1]?.slice(7, 12)).toEqual(['AGE', 'lab', '2', '4294967296', 'wanted']);
    expect(row('pvmr')[1]).toEqual(['intent-1', 'create', 'workers', 'cli', 'AGE']);
    expect(kubectl('get', 'pvescaler', '-A', '-o', 'name')).toContain(
      `proxmoxmachine.pvescaler.dev/${id}`,
    );
    expect(kubectl('describe', 'pvm', id, '-n', namespace)).toContain('Node Name:');
    await store.close();
  });

  it('refuses changes of the spec', async () => {
    const namespace = await newNamespace();
    const store = await open(namespace, new MemoryStore({ clock: systemClock }), systemClock);
    const id = aMachineId(2);
    await store.machines.create(id, aMachine({ id }));
    await store.intents.create('intent-1', anIntent());
    const patch = (kind: string, name: string, spec: string) =>
      kubectl('patch', kind, name, '-n', namespace, '--type', 'merge', '-p', `{"spec":${spec}}`);
    expect(patch('pvm', id, '{"pool":"other"}')).toContain('spec is immutable');
    expect(patch('pvmr', 'intent-1', '{"machines":[]}')).toContain('spec is immutable');
    expect(patch('pvm', id, 'null')).toContain('spec cannot be removed');
    await store.close();
  });

  storeContract('Kubernetes, on a real API server', async (clock) => {
    const namespace = await newNamespace();
    const local = new MemoryStore({ clock });
    const stores = [await open(namespace, local, clock)];
    const reopen = async () => {
      const store = await open(namespace, local.reopen(), clock);
      stores.push(store);
      return store;
    };
    const cleanup = async () => {
      await Promise.all(stores.map((store) => store.close()));
    };
    return { store: stores[0]!, reopen, cleanup };
  });
});
