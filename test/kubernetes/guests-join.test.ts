// SPDX-License-Identifier: Apache-2.0
// Guests of the simulated Proxmox VE join the simulated cluster, with nothing but their seed, on virtual time.
import { createHash, X509Certificate } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  buildSeedIso,
  type JoinInput,
  renderSeed,
  toSeedFiles,
} from '../../src/bootstrap/index.ts';
import {
  aK3sJoin,
  aKubeadmJoin,
  aMachineId,
  anRke2Join,
  aSeedInput,
  MAC,
  unwrap,
} from '../../src/bootstrap/testing/a-seed.ts';
import { KubernetesCluster } from '../../src/kubernetes/index.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import {
  createAuthority,
  KubernetesSim,
  userOfCertificate,
} from '../../src/sim/kubernetes/index.ts';
import { createGuest, type Guest } from '../../src/sim/proxmox/index.ts';
import { SimTransport } from './sim-transport.ts';

const SERVER = 'https://kube.example:6443';
const GIB = 2 ** 30;
const DISTRIBUTIONS = ['k3s', 'rke2', 'kubeadm'] as const;
type Distribution = (typeof DISTRIBUTIONS)[number];

async function start() {
  const clock = new VirtualClock();
  const random = new SeededRandom(7);
  const authority = createAuthority();
  const sim = new KubernetesSim({
    clock,
    random,
    adminToken: 'admin',
    controllers: {},
    join: { server: SERVER, authority },
  });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  void sim.run(stop.signal);
  await clock.advance(1_000);
  const cluster = new KubernetesCluster({
    transport: new AdminTransport(sim),
    server: SERVER,
    caPem: authority.certPem,
    clock,
    random,
    onError: () => undefined,
  });
  onTestFinished(() => cluster.close());
  return { clock, random, sim, cluster, caPem: authority.certPem };
}

type Site = Awaited<ReturnType<typeof start>>;

/** Sends every request with the token of the administrator. */
class AdminTransport extends SimTransport {
  override request(request: Parameters<SimTransport['request']>[0]) {
    return super.request({
      ...request,
      headers: { ...request.headers, authorization: 'Bearer admin' },
    });
  }
}

async function createToken({ cluster }: Site, distribution: Distribution): Promise<string> {
  const { token } = await cluster.createBootstrapToken({
    machine: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    description: 'a test',
    lifetimeMs: 3_000_000,
    groups: [`system:bootstrappers:${distribution}:default-node-token`],
    usages: ['authentication', 'signing'],
  });
  return token;
}

function sha256(data: Buffer | string): string {
  return createHash('sha256').update(data).digest('hex');
}

function joinOf({ caPem }: Site, distribution: Distribution, token: string): JoinInput {
  const spki = new X509Certificate(caPem).publicKey.export({ type: 'spki', format: 'der' });
  if (distribution === 'kubeadm') {
    return aKubeadmJoin({
      server: SERVER,
      token,
      caCertHashes: [`sha256:${sha256(spki)}`],
      packages: ['containerd', 'kubeadm', 'kubelet'],
    });
  }
  const agentToken = `K10${sha256(caPem)}::${token}`;
  const rancher = { server: SERVER, token: agentToken, sha256: undefined };
  return distribution === 'k3s' ? aK3sJoin(rancher) : anRke2Join(rancher);
}

function boot(site: Site, join: JoinInput): Guest {
  const base = aSeedInput();
  const id = site.random.uuid();
  const machine = { ...base.machine, id: aMachineId(id), name: 'worker-1', vmId: 1_250 };
  const seed = unwrap(renderSeed({ ...base, machine, join }));
  const guest = createGuest({
    vmId: 1_250,
    smbiosUuid: id,
    cpus: 2,
    memoryBytes: 4 * GIB,
    interfaces: [{ slot: 'net0', mac: MAC, bridge: 'vmbr0' }],
    disk: {
      image: 'jammy-with-agent.qcow2',
      isFirstBoot: true,
      sizeBytes: 20 * GIB,
      state: undefined,
    },
    seedIso: buildSeedIso(toSeedFiles(seed), site.clock.now()),
    cloudInitDrive: undefined,
    agentEnabled: true,
    behaviour: 'normal',
    clock: site.clock,
    random: site.random,
    speed: 1,
    leaseAddress: () => '10.0.0.9/24',
    connect: ({ client }) => {
      const peer = client && { certificateUser: userOfCertificate(client.certPem) };
      return Promise.resolve(new SimTransport(site.sim, peer));
    },
  });
  onTestFinished(() => guest.stop());
  guest.start();
  return guest;
}

function readyOf({ sim }: Site): unknown {
  const [node] = sim.list('v1', 'nodes');
  const { conditions = [] } = (node?.['status'] ?? {}) as { conditions?: Record<string, string>[] };
  return conditions.find(({ type }) => type === 'Ready')?.['status'];
}

describe.each(DISTRIBUTIONS)('a %s guest', (distribution) => {
  it('joins with a token, becomes a ready Node without taints, and runs pods', async () => {
    const site = await start();
    const guest = boot(site, joinOf(site, distribution, await createToken(site, distribution)));
    await site.clock.advance(180_000);
    expect(guest.report().errors).toEqual([]);
    expect(readyOf(site)).toBe('True');
    const [node] = site.sim.list('v1', 'nodes');
    expect(JSON.stringify(node?.['spec'])).not.toContain('node.kubernetes.io/not-ready');
    site.sim.create('v1', 'pods', {
      metadata: {
        name: 'job',
        namespace: 'default',
        annotations: { 'sim.pvescaler.dev/run-seconds': '60' },
      },
      spec: {
        tolerations: [{ operator: 'Exists' }],
        containers: [{ name: 'main', image: 'x' }],
      },
    });
    const phase = () => (site.sim.list('v1', 'pods')[0]!['status'] as { phase: string }).phase;
    await site.clock.advance(30_000);
    expect(phase()).toBe('Running');
    await site.clock.advance(60_000);
    expect(phase()).toBe('Succeeded');
  });

  it('becomes unreachable when its VM stops', async () => {
    const site = await start();
    const guest = boot(site, joinOf(site, distribution, await createToken(site, distribution)));
    await site.clock.advance(180_000);
    expect(readyOf(site)).toBe('True');
    guest.stop();
    await site.clock.advance(70_000);
    expect(readyOf(site)).toBe('Unknown');
  });

  it('does not join with a wrong token', async () => {
    const site = await start();
    const token = await createToken(site, distribution);
    const wrong = token.replace(/\..*/, '.0000000000000000');
    const guest = boot(site, joinOf(site, distribution, wrong));
    await site.clock.advance(120_000);
    const { warnings, errors } = guest.report();
    expect([...warnings, ...errors].join('\n')).toMatch(/401|signature/);
    expect(site.sim.list('v1', 'nodes')).toEqual([]);
  });
});
