// SPDX-License-Identifier: Apache-2.0
// Simulated guests join a real cluster using only the content of their seed.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ApiObject,
  type ControlPlane,
  startControlPlane,
  waitUntil,
} from './controlplane/index.ts';
import { createToken } from './support/bootstrap-token.ts';
import { findNode, findPod, readReadiness } from './support/kube-objects.ts';
import { bootGuest, createJoin, type GuestOptions, runAgentSteps } from './support/real-guest.ts';

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

async function createJoinWithToken(distribution: Distribution) {
  return createJoin(plane, distribution, await createToken(plane.api, { distribution }));
}

function boot(name: string, order: Omit<GuestOptions, 'name' | 'vmId'>) {
  lastVmId += 1;
  return bootGuest({ name, vmId: lastVmId, ...order });
}

function waitUntilReady(name: string) {
  return waitUntil(`${name} is ready`, async () => {
    const node = await findNode(plane.api, name);
    return node !== undefined && readReadiness(node) === 'True' ? node : undefined;
  });
}

describe.each(DISTRIBUTIONS)('a %s node', (distribution) => {
  it('registers with the identity of its machine and runs pods', async () => {
    const name = `worker-${distribution}`;
    const pool = { taints: [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' }] } as const;
    const { guest, machineId } = boot(name, {
      join: await createJoinWithToken(distribution),
      pool,
    });
    const node = await waitUntilReady(name);
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
    await expectPodRuns(distribution, name);
  });

  it('cannot join with a wrong or expired token', async () => {
    const wrong = await createToken(plane.api, { distribution });
    const secret = wrong.replace(/\..*/, '.0000000000000000');
    const late = await createToken(plane.api, { distribution, lifetimeMs: -1_000 });
    const tries = [secret, late].map((token, index) =>
      boot(`refused-${index}-${distribution}`, { join: createJoin(plane, distribution, token) }),
    );
    for (const { guest } of tries) {
      await waitUntil('the guest reports why it cannot join', () => {
        const { warnings, errors } = guest.report();
        return [...warnings, ...errors].some((text) => /401|signature/.test(text));
      });
    }
    for (const index of [0, 1])
      expect(await findNode(plane.api, `refused-${index}-${distribution}`)).toBeUndefined();
  });

  it('does not join a server with another CA than the pinned one', async () => {
    const token = await createToken(plane.api, { distribution });
    const elsewhere = {
      server: plane.server,
      supervisor: plane.supervisor,
      tokenPrefix: `K10${'0'.repeat(64)}::`,
      caCertHash: `sha256:${'0'.repeat(64)}`,
    };
    const { guest } = boot(`wrong-ca-${distribution}`, {
      join: createJoin(elsewhere, distribution, token),
    });
    await waitUntil('the guest gives up', () =>
      guest.report().errors.some((text) => /CA hash|is pinned/.test(text)),
    );
    expect(await findNode(plane.api, `wrong-ca-${distribution}`)).toBeUndefined();
  });
});

async function expectPodRuns(distribution: string, nodeName: string): Promise<void> {
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
    const pod = await findPod(plane.api, name);
    return pod !== undefined && readReadiness(pod) === 'True' && pod.status.phase === 'Running';
  });
  await plane.api.delete(`/api/v1/namespaces/default/pods/${name}`);
  // Only its kubelet may report that it has ended.
  await waitUntil('the pod is gone', async () => (await findPod(plane.api, name)) === undefined);
}

it('nodes are not ready while their VMs are off, and rejoin without a token', async () => {
  const guests = await Promise.all(
    DISTRIBUTIONS.map(async (distribution) => {
      const name = `again-${distribution}`;
      return { name, ...boot(name, { join: await createJoinWithToken(distribution) }) };
    }),
  );
  const before = await Promise.all(guests.map(({ name }) => waitUntilReady(name)));
  for (const { guest } of guests) guest.stop();
  for (const { name } of guests) {
    await waitUntil(`${name} is unknown`, async () => {
      const node = await findNode(plane.api, name);
      return node !== undefined && readReadiness(node) === 'Unknown';
    });
  }
  const second = guests.map(({ bootWithoutSeed }) => bootWithoutSeed());
  const after = await Promise.all(guests.map(({ name }) => waitUntilReady(name)));
  expect(after.map(({ metadata }) => metadata.uid)).toEqual(
    before.map(({ metadata }) => metadata.uid),
  );
  for (const guest of second)
    expect(guest.report()).toMatchObject({ joinAttempts: [], errors: [] });
});

it('a kubeadm node joins through the guest agent, without join data on the seed', async () => {
  const join = { ...(await createJoinWithToken('kubeadm')), via: 'agent' } as const;
  const { guest, seed } = boot('by-agent', { join });
  await waitUntil('the agent answers', () => guest.isAgentRunning());
  expect(await runAgentSteps(guest, seed.agentSteps)).toBeUndefined();
  expect((await waitUntilReady('by-agent')).spec.providerID).toBe(`proxmox://lab/${lastVmId}`);
});

it('a guest with the seed of another VM registers with its own SMBIOS UUID', async () => {
  const { machineId } = boot('mistaken', {
    join: await createJoinWithToken('k3s'),
    seedVmId: 9_999,
  });
  const node = await waitUntilReady('mistaken');
  expect(node.spec.providerID).toBe('proxmox://lab/9999');
  expect(node.status.nodeInfo.systemUUID).toBe(machineId);
});

it('every certificate was requested with a bootstrap token and signed by the cluster', async () => {
  const requests = await plane.api.list<CertificateRequest>(
    '/apis/certificates.k8s.io/v1/certificatesigningrequests',
  );
  expect(requests.length).toBeGreaterThanOrEqual(7);
  for (const { spec, status } of requests) {
    expect(spec.username).toMatch(/^system:bootstrap:/);
    expect(status.certificate).toBeDefined();
  }
});
