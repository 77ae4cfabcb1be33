// SPDX-License-Identifier: Apache-2.0
// ProxmoxPool objects on the simulated API server, on virtual time.
import { describe, expect, it, onTestFinished } from 'vitest';
import { poolDefinition } from '../../src/config/index.ts';
import { KubernetesPoolObjects } from '../../src/kubernetes/index.ts';
import { Conflict, type PvescalerError } from '../../src/ports/errors.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { PoolObject, PoolObjectStatus } from '../../src/ports/pool-objects.ts';
import { KubernetesSim } from '../../src/sim/kubernetes/index.ts';
import { SeverableTransport } from './severable-transport.ts';
import { SimTransport } from './sim-transport.ts';

const API = 'pvescaler.dev/v1alpha1';
const PATH = `/apis/${API}/namespaces/pvescaler/proxmoxpools`;
const SPEC = { size: { cpu: 2, memory: '4Gi' } };
const CONDITION = {
  type: 'Ready',
  status: 'True',
  reason: 'InUse',
  message: '',
  observedGeneration: 1,
  lastTransitionTime: '2026-01-01T00:00:00Z',
} as const;
const STATUS: PoolObjectStatus = {
  observedGeneration: 1,
  replicas: 2,
  readyReplicas: 1,
  minReplicas: 0,
  maxReplicas: 10,
  selector: 'a=b',
  conditions: [CONDITION],
};

async function setUp({ isDefined = true } = {}) {
  const clock = new VirtualClock();
  const sim = new KubernetesSim({ clock, random: new SeededRandom(5) });
  if (isDefined) sim.install([poolDefinition()]);
  sim.create('v1', 'namespaces', { metadata: { name: 'pvescaler' } });
  const transport = new SeverableTransport(new SimTransport(sim));
  const errors: PvescalerError[] = [];
  const objects = new KubernetesPoolObjects({
    transport,
    server: 'http://sim.example',
    clock,
    random: new SeededRandom(6),
    namespace: 'pvescaler',
    onError: (error) => errors.push(error),
  });
  onTestFinished(() => objects.close());
  const create = (name: string, namespace = 'pvescaler', spec: object = SPEC) =>
    sim.create(API, 'proxmoxpools', { metadata: { name, namespace }, spec: { ...spec } });
  const names = () => objects.all()?.map(({ name }) => name);
  const find = (name: string): PoolObject => {
    const found = objects.all()?.find((one) => one.name === name);
    if (found === undefined) throw new Error(`there is no ProxmoxPool ${name}`);
    return found;
  };
  const request = async (method: string, path: string, body?: object) => {
    const answer = await sim.fetch(
      new Request(`http://sim.example${path}`, {
        method,
        headers: {
          'content-type': `application/${method === 'PATCH' ? 'merge-patch+json' : 'json'}`,
        },
        ...(body && { body: JSON.stringify(body) }),
      }),
      {},
    );
    return (await answer.json()) as {
      readonly metadata: { readonly resourceVersion: string };
      readonly status?: object;
      readonly spec?: { readonly replicas?: number };
    };
  };
  await clock.advance(0);
  return { clock, sim, transport, errors, objects, create, names, find, request };
}

describe('ProxmoxPool objects', () => {
  it('are known once they were read, in their namespace only', async () => {
    const { clock, objects, create, names, find } = await setUp();
    expect(names()).toEqual([]);
    const changed = objects.waitForChange(new AbortController().signal);
    create('web');
    create('other', 'default');
    await clock.advance(0);
    await changed;
    expect(names()).toEqual(['web']);
    expect(find('web')).toMatchObject({
      generation: 1,
      isTerminating: false,
      isHeld: false,
      status: undefined,
      spec: { ...SPEC, autoscaling: true, limits: { min: 0, max: 10 } },
    });
  });

  it('are unknown, not absent, while their definition is missing', async () => {
    const { clock, sim, objects, names, errors } = await setUp({ isDefined: false });
    await clock.advance(60_000);
    expect(names()).toBeUndefined();
    expect(objects.lastError()?.message).toContain('404');
    expect(errors.length).toBeGreaterThan(1);
    sim.install([poolDefinition()]);
    await clock.advance(60_000);
    expect(names()).toEqual([]);
    expect(objects.lastError()).toBeUndefined();
  });

  it('stay the same while the API server cannot be read', async () => {
    const { clock, sim, transport, create, names } = await setUp();
    create('web');
    await clock.advance(0);
    transport.cutOff();
    sim.remove(API, 'proxmoxpools', { name: 'web', namespace: 'pvescaler' });
    create('later');
    await clock.advance(600_000);
    expect(names()).toEqual(['web']);
    transport.reconnect();
    await clock.advance(60_000);
    expect(names()).toEqual(['later']);
  });

  it('are kept by the finalizer, beside those of others', async () => {
    const { clock, objects, create, find, request, names } = await setUp();
    create('web');
    await request('PATCH', `${PATH}/web`, { metadata: { finalizers: ['example.com/other'] } });
    await clock.advance(0);
    await objects.setHeld(find('web'), true);
    await clock.advance(0);
    expect(find('web').isHeld).toBe(true);
    await request('DELETE', `${PATH}/web`);
    await clock.advance(0);
    expect(find('web')).toMatchObject({ isTerminating: true, isHeld: true });
    await objects.setHeld(find('web'), false);
    await clock.advance(0);
    expect(find('web')).toMatchObject({ isTerminating: true, isHeld: false });
    await request('PATCH', `${PATH}/web`, { metadata: { finalizers: [] } });
    await clock.advance(0);
    expect(names()).toEqual([]);
  });

  it('have a status of which the spec knows nothing, and kubectl scale', async () => {
    const { clock, objects, create, find, request } = await setUp();
    create('web', 'pvescaler', { ...SPEC, autoscaling: false, replicas: 2 });
    await clock.advance(0);
    await objects.writeStatus(find('web'), STATUS);
    await clock.advance(0);
    expect(find('web')).toMatchObject({ generation: 1, status: STATUS });
    expect(await request('GET', `${PATH}/web/scale`)).toMatchObject({
      spec: { replicas: 2 },
      status: { replicas: 2, selector: 'a=b' },
    });
    await request('PATCH', `${PATH}/web/scale`, { spec: { replicas: 5 } });
    await clock.advance(0);
    expect(find('web')).toMatchObject({ generation: 2, spec: { replicas: 5 } });
  });

  it('are not written by a process that has read an older version', async () => {
    const { clock, objects, create, find, request } = await setUp();
    create('web');
    await clock.advance(0);
    const old = find('web');
    await request('PATCH', `${PATH}/web`, { spec: { priority: 1 } });
    await expect(objects.writeStatus(old, STATUS)).rejects.toBeInstanceOf(Conflict);
    await expect(objects.setHeld(old, true)).rejects.toBeInstanceOf(Conflict);
    await request('DELETE', `${PATH}/web`);
    await objects.writeStatus(old, STATUS);
    create('web');
    await expect(objects.writeStatus(old, STATUS)).rejects.toThrow();
    await clock.advance(0);
    expect(find('web').status).toBeUndefined();
  });
});
