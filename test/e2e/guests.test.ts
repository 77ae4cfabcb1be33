// SPDX-License-Identifier: Apache-2.0
// Simulated guests join a real cluster with nothing but what their seed says.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ApiObject,
  type ControlPlane,
  startControlPlane,
  waitUntil,
} from './controlplane/index.ts';
import { createToken } from './support/bootstrap-token.ts';
import { nodeNamed, podNamed, readiness } from './support/kube-objects.ts';
import { bootGuest, type GuestOrder, joinOf, takeAgentSteps } from './support/real-guest.ts';

let plane: ControlPlane;
let lastVmId = 1_250;
beforeAll(async () => {
  plane = await startControlPlane();
});
afterAll(() => plane.stop());

const DISTRIBUTIONS = ['k3s', 'rke2', 'kubeadm'] as const;
type Distribution = (typeof DISTRIBUTIONS)[number];
const VERSIONS = { k3s: 'v1.34.4+k3s1', rke2: 'v1.34.4+rke2r1', kubeadm: 'v1.33.0' } as const;

interface CertificateRequest extends ApiObject {
  readonly spec: { readonly username: string };
  readonly status: { readonly certificate?: string };
}

async function joinWithToken(distribution: Distribution) {
  return joinOf(plane, distribution, await createToken(plane.api, { distribution }));
}

function boot(name: string, order: Omit<GuestOrder, 'name' | 'vmId'>) {
  lastVmId += 1;
  return bootGuest({ name, vmId: lastVmId, ...order });
}

function ready(name: string) {
  return waitUntil(`${name} is ready`, async () => {
    const node = await nodeNamed(plane.api, name);
    return node !== undefined && readiness(node) === 'True' ? node : undefined;
  });
}

describe.each(DISTRIBUTIONS)('a %s node', (distribution) => {
  it('registers as what its machine is, and runs pods', async () => {
    const name = `worker-${distribution}`;
    const pool = { taints: [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' }] } as const;
    const { guest, machineId } = boot(name, { join: await joinWithToken(distribution), pool });
    const node = await ready(name);
    expect(guest.report().errors).toEqual([]);
    expect(node.spec.providerID).toBe(`proxmox://lab/${lastVmId}`);
    expect(node.spec.taints).toContainEqual(pool.taints[0]);
    expect(node.status.nodeInfo).toMatchObject({
      systemUUID: machineId,
      kubeletVersion: VERSIONS[distribution],
    });
    expect(node.metadata.labels).toMatchObject({
      'kubernetes.io/hostname': name,
      'autoscaler.proxmox/group': 'small',
      'autoscaler.proxmox/vmid': String(lastVmId),
      'topology.kubernetes.io/zone': 'pve1',
      tier: 'small',
    });
    expect(node.status.capacity).toMatchObject({ cpu: '2', pods: '110' });
    const kibibytes = (text: string | undefined) => Number.parseInt(text ?? '', 10);
    const memory = kibibytes(node.status.capacity['memory']);
    expect(memory).toBeGreaterThan(3.6 * 2 ** 20);
    expect(memory).toBeLessThan(4 * 2 ** 20);
    const held = memory - kibibytes(node.status.allocatable['memory']);
    expect(held).toBe(distribution === 'kubeadm' ? 100 * 1024 : 0);
    await runsPods(distribution, name);
  });

  it('is not let in with a token that is wrong, or whose time is over', async () => {
    const wrong = await createToken(plane.api, { distribution });
    const secret = wrong.replace(/\..*/, '.0000000000000000');
    const late = await createToken(plane.api, { distribution, lifetimeMs: -1_000 });
    const tries = [secret, late].map((token, index) =>
      boot(`refused-${index}-${distribution}`, { join: joinOf(plane, distribution, token) }),
    );
    for (const { guest } of tries) {
      await waitUntil('the guest says why it cannot join', () => {
        const { warnings, errors } = guest.report();
        return [...warnings, ...errors].some((text) => /401|signature/.test(text));
      });
    }
    for (const index of [0, 1])
      expect(await nodeNamed(plane.api, `refused-${index}-${distribution}`)).toBeUndefined();
  });

  it('does not believe a server whose CA is not the one it was told', async () => {
    const token = await createToken(plane.api, { distribution });
    const elsewhere = {
      server: plane.server,
      supervisor: plane.supervisor,
      tokenPrefix: `K10${'0'.repeat(64)}::`,
      caCertHash: `sha256:${'0'.repeat(64)}`,
    };
    const { guest } = boot(`wrong-ca-${distribution}`, {
      join: joinOf(elsewhere, distribution, token),
    });
    await waitUntil('the guest gives up', () =>
      guest.report().errors.some((text) => /CA hash|is pinned/.test(text)),
    );
    expect(await nodeNamed(plane.api, `wrong-ca-${distribution}`)).toBeUndefined();
  });
});

async function runsPods(distribution: string, nodeName: string): Promise<void> {
  const name = `app-${distribution}`;
  await plane.api.create('/api/v1/namespaces/default/pods', {
    metadata: { name },
    spec: {
      nodeSelector: { 'kubernetes.io/hostname': nodeName },
      tolerations: [{ operator: 'Exists' }],
      containers: [
        { name: 'app', image: 'example/app', readinessProbe: { httpGet: { port: 80 } } },
      ],
    },
  });
  await waitUntil('the pod is ready', async () => {
    const pod = await podNamed(plane.api, name);
    return pod !== undefined && readiness(pod) === 'True' && pod.status.phase === 'Running';
  });
  await plane.api.delete(`/api/v1/namespaces/default/pods/${name}`);
  // Nobody but its kubelet may say that it has ended.
  await waitUntil('the pod is gone', async () => (await podNamed(plane.api, name)) === undefined);
}

it('nodes are not ready while their VMs are off, and need no token to come back', async () => {
  const guests = await Promise.all(
    DISTRIBUTIONS.map(async (distribution) => {
      const name = `again-${distribution}`;
      return { name, ...boot(name, { join: await joinWithToken(distribution) }) };
    }),
  );
  const before = await Promise.all(guests.map(({ name }) => ready(name)));
  for (const { guest } of guests) guest.stop();
  for (const { name } of guests) {
    await waitUntil(`${name} is given up`, async () => {
      const node = await nodeNamed(plane.api, name);
      return node !== undefined && readiness(node) === 'Unknown';
    });
  }
  const second = guests.map(({ againWithoutSeed }) => againWithoutSeed());
  const after = await Promise.all(guests.map(({ name }) => ready(name)));
  expect(after.map(({ metadata }) => metadata.uid)).toEqual(
    before.map(({ metadata }) => metadata.uid),
  );
  for (const guest of second)
    expect(guest.report()).toMatchObject({ joinAttempts: [], errors: [] });
});

it('a kubeadm node joins by the guest agent, with nothing of it on the seed', async () => {
  const join = { ...(await joinWithToken('kubeadm')), via: 'agent' } as const;
  const { guest, seed } = boot('by-agent', { join });
  await waitUntil('the agent answers', () => guest.isAgentRunning());
  expect(await takeAgentSteps(guest, seed.agentSteps)).toBeUndefined();
  expect((await ready('by-agent')).spec.providerID).toBe(`proxmox://lab/${lastVmId}`);
});

it('a guest believes its seed: with that of another VM it is the wrong node, and its UUID tells', async () => {
  const { machineId } = boot('mistaken', { join: await joinWithToken('k3s'), seedOf: 9_999 });
  const node = await ready('mistaken');
  expect(node.spec.providerID).toBe('proxmox://lab/9999');
  expect(node.status.nodeInfo.systemUUID).toBe(machineId);
});

it('every certificate was asked for with a bootstrap token and signed by the cluster', async () => {
  const requests = await plane.api.list<CertificateRequest>(
    '/apis/certificates.k8s.io/v1/certificatesigningrequests',
  );
  expect(requests.length).toBeGreaterThanOrEqual(7);
  for (const { spec, status } of requests) {
    expect(spec.username).toMatch(/^system:bootstrap:/);
    expect(status.certificate).toBeDefined();
  }
});
