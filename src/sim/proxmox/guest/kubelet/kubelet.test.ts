// SPDX-License-Identifier: Apache-2.0
// A guest joins a fake API server on virtual time. test/e2e does the same with a real API server.
import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  CA_PREFIX,
  createFakeApiServer,
  type FakeApiServer,
  statusAnswer,
} from '../testing/fake-api-server.ts';
import { buildSeedIso, createGuestHarness, type GuestHarness } from '../testing/guest-harness.ts';

const TOKEN = 'abcdef.0123456789abcdef';
const LEASE = /^(POST|PUT) .*\/leases/;

function k3sSeed(config: readonly string[] = [], token = `${CA_PREFIX}${TOKEN}`): Uint8Array {
  return buildSeedIso({
    userData: `#cloud-config
write_files:
  - path: /etc/rancher/k3s/config.yaml
    content: |
      server: https://lb.example:6443
      token: ${token}
      node-label: ["tier=small"]
      kubelet-arg: ["provider-id=proxmox://lab/1250"]
${config.map((line) => `      ${line}\n`).join('')}
runcmd:
  - curl -fsSLo /usr/local/bin/k3s https://example.org/download/v1.34.4%2Bk3s1/k3s
  - chmod 0755 /usr/local/bin/k3s
  - k3s agent
`,
  });
}

interface JoinHarness extends GuestHarness {
  readonly server: FakeApiServer;
}

function createJoinHarness(seedIso: Uint8Array): JoinHarness {
  const server = createFakeApiServer();
  return { ...createGuestHarness({ seedIso, connect: server.connect }), server };
}

function count(calls: readonly string[], pattern: RegExp): number {
  return calls.filter((call) => pattern.test(call)).length;
}

describe('a simulated kubelet', () => {
  it('connects without a CA, then with the CA, then with its client certificate', async () => {
    const { server, guest, clock } = createJoinHarness(k3sSeed());
    guest.start();
    await clock.advance(60_000);
    expect(
      server.trusts.map(({ caPem, client }) => [caPem !== undefined, client?.certPem]),
    ).toEqual([
      [false, undefined],
      [true, undefined],
      [true, undefined],
      [true, 'cert'],
    ]);
    expect(server.bodies.get('POST /api/v1/nodes')).toMatchObject({
      metadata: { name: 'worker-1', labels: { tier: 'small' } },
      spec: { providerID: 'proxmox://lab/1250' },
      status: {
        nodeInfo: { systemUUID: '7c9e6679-7425-40de-944b-e07fc1f90ae7' },
      },
    });
    expect(guest.report()).toMatchObject({ phase: 'running', errors: [] });
  });

  it('renews its lease while it runs and makes no request after power-off', async () => {
    const { server, guest, clock } = createJoinHarness(k3sSeed());
    guest.start();
    await clock.advance(60_000);
    const before = count(server.calls, LEASE);
    await clock.advance(60_000);
    expect(count(server.calls, LEASE) - before).toBe(6);
    guest.stop();
    const last = server.calls.length;
    await clock.advance(600_000);
    expect(server.calls).toHaveLength(last);
  });

  it('reports Ready again after the node controller set it to Unknown', async () => {
    const { server, guest, clock } = createJoinHarness(k3sSeed());
    const answer = (ready: string) => ({
      status: 200,
      body: JSON.stringify({ status: { conditions: [{ type: 'Ready', status: ready }] } }),
    });
    let ready = 'True';
    server.override = (call) => (call === 'GET /api/v1/nodes/worker-1' ? answer(ready) : undefined);
    guest.start();
    await clock.advance(60_000);
    const reports = () => count(server.calls, /^PATCH .*\/status$/);
    const before = reports();
    await clock.advance(60_000);
    expect(reports()).toBe(before);
    ready = 'Unknown';
    await clock.advance(10_000);
    expect(reports()).toBe(before + 1);
    expect(server.bodies.get('PATCH /api/v1/nodes/worker-1/status')).toMatchObject({
      status: {
        conditions: expect.arrayContaining([
          expect.objectContaining({ type: 'Ready', status: 'True' }),
        ]),
      },
    });
  });

  it('stops with its systemd unit', async () => {
    const { server, exec, boot, clock } = createJoinHarness(k3sSeed());
    await boot();
    await exec(['systemctl', 'stop', 'k3s-agent']);
    const last = server.calls.length;
    await clock.advance(600_000);
    expect(server.calls).toHaveLength(last);
  });

  it('starts a bound pod once, reports it ready, again if that was changed, and deletes it after termination', async () => {
    const { server, guest, clock } = createJoinHarness(k3sSeed());
    guest.start();
    await clock.advance(60_000);
    const pod = {
      metadata: { uid: 'p1', name: 'app', namespace: 'default' },
      spec: { containers: [{ name: 'c', image: 'i', readinessProbe: { initialDelaySeconds: 5 } }] },
    };
    const path = '/api/v1/namespaces/default/pods/app';
    const podPatch = () =>
      server.bodies.get(`PATCH ${path}/status`) as
        | { status: { phase: string; containerStatuses: { ready: boolean }[] } }
        | undefined;
    server.sendPodEvent('ADDED', pod);
    await clock.advance(2_000);
    expect(podPatch()?.status).toMatchObject({
      phase: 'Running',
      containerStatuses: [{ ready: false }],
    });
    server.sendPodEvent('MODIFIED', pod);
    await clock.advance(10_000);
    expect(podPatch()?.status.containerStatuses).toMatchObject([{ ready: true }]);
    expect(count(server.calls, /^PATCH .*pods\/app\/status/)).toBe(2);
    const ready = (status: string) => ({
      ...pod,
      status: { conditions: [{ type: 'Ready', status }] },
    });
    server.sendPodEvent('MODIFIED', ready('True'));
    await clock.advance(10_000);
    expect(count(server.calls, /^PATCH .*pods\/app\/status/)).toBe(2);
    // The node controller does this when it loses the node.
    server.sendPodEvent('MODIFIED', ready('False'));
    await clock.advance(10_000);
    expect(count(server.calls, /^PATCH .*pods\/app\/status/)).toBe(3);
    expect(podPatch()?.status.containerStatuses).toMatchObject([{ ready: true }]);
    const terminating = {
      deletionTimestamp: '2026-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 30,
    };
    server.sendPodEvent('MODIFIED', { ...pod, metadata: { ...pod.metadata, ...terminating } });
    await clock.advance(500);
    expect(count(server.calls, /^DELETE/)).toBe(0);
    await clock.advance(500);
    expect(server.bodies.get(`DELETE ${path}`)).toMatchObject({
      gracePeriodSeconds: 0,
      preconditions: { uid: 'p1' },
    });
  });
});

describe('the join of a simulated guest', () => {
  it('waits for an unreachable server', async () => {
    const { server, guest, clock } = createJoinHarness(k3sSeed());
    server.isDown = true;
    guest.start();
    await clock.advance(120_000);
    expect(guest.report()).toMatchObject({ phase: 'cloud-init', errors: [] });
    server.isDown = false;
    await clock.advance(30_000);
    expect(guest.report().phase).toBe('running');
    expect(server.calls).toContain('POST /api/v1/nodes');
  });

  it('times out with a token that the server rejects', async () => {
    const { server, guest, boot } = createJoinHarness(k3sSeed());
    server.override = (call) =>
      call.startsWith('POST') ? statusAnswer(401, 'Unauthorized') : undefined;
    await boot();
    expect(guest.report().errors.join()).toMatch(/timed out.*401 Unauthorized/);
    expect(count(server.calls, /nodes/)).toBe(0);
  });

  it.each([
    {
      what: 'a CA that does not match the token',
      token: `K10${'0'.repeat(64)}::${TOKEN}`,
      message: 'CA hash',
    },
    {
      what: 'a token that is not a bootstrap token',
      token: `${CA_PREFIX}server:password`,
      message: 'not a bootstrap token',
    },
    {
      what: 'a label that a kubelet may not set',
      config: ['node-label+: [node-role.kubernetes.io/worker=x]'],
      message: 'node-role',
    },
    { what: 'an invalid taint', config: ['node-taint: ["a=b:Never"]'], message: 'taint' },
  ])('fails immediately for $what', async ({ config, token, message }) => {
    const { server, guest, clock } = createJoinHarness(k3sSeed(config, token));
    guest.start();
    await clock.advance(60_000);
    expect(guest.report().phase).toBe('running');
    expect(guest.report().errors.join()).toContain(message);
    expect(count(server.calls, /nodes|certificates/)).toBe(0);
  });

  it('reports a registration error of the API server once', async () => {
    const { server, guest, boot } = createJoinHarness(k3sSeed());
    server.override = (call) =>
      call === 'POST /api/v1/nodes'
        ? statusAnswer(403, 'is not allowed to modify labels')
        : undefined;
    await boot();
    expect(count(server.calls, /^POST \/api\/v1\/nodes/)).toBeGreaterThan(100);
    expect(guest.report().errors).toEqual([
      expect.stringContaining('not allowed to modify labels'),
    ]);
  });

  async function restarted(token: string) {
    const first = createJoinHarness(k3sSeed());
    await first.boot();
    first.guest.stop();
    const state = first.guest.diskState();
    const { server, input } = first;
    const second = createGuestHarness({
      connect: server.connect,
      disk: { ...input.disk, isFirstBoot: false, state },
    });
    await second.boot();
    const before = server.calls.length;
    const config = '/etc/rancher/k3s/config.yaml';
    await second.exec(['sh', '-c', `sed -i 's/^token:.*/token: ${token}/' ${config}; k3s agent`]);
    const { errors, joinAttempts } = second.guest.report();
    return { errors: errors.join(), joinAttempts, calls: server.calls.slice(before) };
  }

  it('starts with its certificates and a token without a secret', async () => {
    const { errors, joinAttempts, calls } = await restarted(`${CA_PREFIX}none00.0000000000000000`);
    expect(errors).toBe('');
    expect(joinAttempts).toEqual([]);
    expect(count(calls, /cacerts/)).toBe(1);
    expect(count(calls, /certificatesigningrequests/)).toBe(0);
    expect(count(calls, LEASE)).toBeGreaterThan(0);
  });

  it.each([
    ['an empty token', '""', ''],
    [
      'the hash of an earlier CA',
      `K10${'0'.repeat(64)}::none00.0000000000000000`,
      'token CA hash does not match the Cluster CA certificate hash',
    ],
  ])('does not start again with %s', async (_, token, message) => {
    const { errors, calls } = await restarted(token);
    expect(errors).toContain(message);
    expect(count(calls, LEASE)).toBe(0);
  });
});

describe('the kubeadm join of a simulated guest', () => {
  const kubeconfig = JSON.stringify({
    clusters: [
      { cluster: { server: 'https://api.example:6443', 'certificate-authority-data': '' } },
    ],
  });
  const header = Buffer.from('{"alg":"HS256","kid":"abcdef"}').toString('base64url');
  const sign = (text: string, secret: string) => {
    const body = `${header}.${Buffer.from(text).toString('base64url')}`;
    return `${header}..${createHmac('sha256', secret).update(body).digest('base64url')}`;
  };
  const seed = buildSeedIso({
    userData: `#cloud-config
packages: [containerd, kubeadm, kubelet]
runcmd:
  - sysctl -w net.ipv4.ip_forward=1
  - kubeadm join lb.example:6443 --token ${TOKEN}
`,
  });

  it.each([
    { what: 'a valid signature', jws: sign(kubeconfig, '0123456789abcdef'), joins: true },
    {
      what: 'the signature of another token',
      jws: sign(kubeconfig, 'fedcba9876543210'),
      joins: false,
    },
    { what: 'changed content', jws: sign(`${kubeconfig} `, '0123456789abcdef'), joins: false },
  ])('checks cluster-info with $what: joins $joins', async ({ jws, joins }) => {
    const { server, guest, boot } = createJoinHarness(seed);
    server.override = (call) =>
      call.endsWith('/cluster-info')
        ? {
            status: 200,
            body: JSON.stringify({ data: { kubeconfig, 'jws-kubeconfig-abcdef': jws } }),
          }
        : undefined;
    await boot();
    expect(guest.report().errors.join().includes('signature')).toBe(!joins);
    expect(server.calls.includes('POST /api/v1/nodes')).toBe(joins);
    expect(guest.report().services['kubelet']?.active ?? false).toBe(joins);
  });
});
