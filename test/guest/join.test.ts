// SPDX-License-Identifier: Apache-2.0
// Real Debian guests under QEMU, created by `serve` on the simulated Proxmox, join the test control plane: with real
// cloud-init, guest agent, containerd, kubeadm and kubelet. After the join they are restarted without the seed, and their
// disks are searched for the token.
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane, waitUntil } from '../e2e/controlplane/index.ts';
import { listNodesOfPool, type NodeObject, readReadiness } from '../e2e/support/kube-objects.ts';
import { accountKubeconfig, applyManifests } from '../e2e/support/manifests.ts';
import {
  listLeftovers,
  listVmsOfPool,
  type SimulatedSite,
  startSite,
  waitUntilReady,
} from '../e2e/support/simulated-site.ts';
import { extractDisk, findFilesWith } from './disk-search.ts';
import { IMAGE } from './image.ts';
import { createKubeadmObjects } from './kubeadm-objects.ts';
import { QemuGuest } from './qemu-guest.ts';

const NAME_OF_HOST = 'api.test';
const BOOT_LIMIT_MS = 25 * 60_000;
const TOKENS =
  '/api/v1/namespaces/kube-system/secrets?fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken';

const WAYS = [
  {
    pool: 'by-cloud-init',
    via: 'cloud-init',
    network: '{ interfaces: [{ bridge: vmbr0 }, { bridge: vmbr0 }], ip: dhcp }',
    addresses: [/^10\.0\.2\./, /^10\.0\.3\./, /^fd00:2:/],
  },
  {
    pool: 'by-agent',
    via: 'agent',
    network:
      '{ interfaces: [{ bridge: vmbr0 }], ip: { v4: "off", v6: { pool: "fd00:2::100-fd00:2::1ff", prefix: 64, gateway: "fd00:2::2" } } }',
    addresses: [/^fd00:2::1..$/],
  },
] as const;

let plane: ControlPlane;
let site: SimulatedSite;
const guests = new Map<number, QemuGuest[]>();

beforeAll(async () => {
  plane = await startControlPlane({ nameForGuests: NAME_OF_HOST, nodeMonitorGraceSeconds: 60 });
  await applyManifests(plane);
  await createKubeadmObjects(plane.api, plane.serverForGuests);
  await forwardIpv6(Number(new URL(plane.server).port));
});
afterAll(() => plane?.stop());

async function startSiteOf({ pool, via, network }: (typeof WAYS)[number]): Promise<SimulatedSite> {
  const disks = mkdtempSync(join(plane.folder, 'disks-'));
  const one = await startSite({
    plane,
    distribution: 'kubeadm',
    join: { kubeadm: { server: plane.serverForGuests, token: 'auto', via } },
    hosts: 1,
    onTestFinished: () => undefined,
    kubeconfig: await accountKubeconfig(plane),
    vms: [
      {
        id: 9_000,
        host: 'pve1',
        template: true,
        image: 'debian-with-agent',
        config: { name: 'debian', agent: '1', scsi0: 'local-lvm:4' },
      },
    ],
    simulator: {
      speed: 1,
      createGuest: (input) => {
        const guest = new QemuGuest(input, IMAGE, disks);
        guests.set(input.vmId, [...(guests.get(input.vmId) ?? []), guest]);
        return guest;
      },
    },
    config: `
  - name: ${pool}
    from: { template: debian, clone: full }
    size: { cpu: 2, memory: 1536Mi, disk: 5Gi }
    limits: { min: 0, max: 1 }
    provisionTimeout: 30m
    network: ${network}
templates:
  debian: { id: 9000 }
`,
  });
  await waitUntilReady(await one.serve('serve'));
  return one;
}

/** QEMU connects to ::1 for a guest; the API server listens on 127.0.0.1 only. */
async function forwardIpv6(port: number): Promise<void> {
  const server = createServer((guest) => {
    const api = connect(port, '127.0.0.1');
    guest.on('error', () => api.destroy()).pipe(api);
    api.on('error', () => guest.destroy()).pipe(guest);
  });
  await new Promise<void>((resolve) => server.listen(port, '::1', resolve));
  server.unref();
}

function scale(pool: string, count: number) {
  return site.runCli('pool', 'scale', pool, '--to', String(count), '--timeout', '20s');
}

function waitUntilNodeIsReady(pool: string, isExpected: (node: NodeObject) => boolean) {
  return waitUntil(
    `the node of ${pool} is ready`,
    async () =>
      (await listNodesOfPool(plane.api, pool)).find(
        (node) => readReadiness(node) === 'True' && isExpected(node),
      ),
    BOOT_LIMIT_MS,
  );
}

/** The end of the log of `serve` and of each console. */
function readLogs(): string {
  const consoles = [...guests.values()].flat().map((guest) => guest.console);
  return [join(site.folder, 'serve.log'), ...consoles]
    .filter((path) => existsSync(path))
    .map((path) => `--- ${path}\n${readFileSync(path, 'utf8').split('\n').slice(-60).join('\n')}\n`)
    .join('');
}

afterEach(({ task }) => {
  if (task.result?.state === 'fail') process.stderr.write(readLogs());
});

describe.each(WAYS)('a Debian guest that joins $pool', (way) => {
  const { pool, via, addresses } = way;
  beforeAll(async () => {
    guests.clear();
    site = await startSiteOf(way);
  });
  afterAll(() => site?.close());

  it('is a Node, also after a restart without the seed, and keeps no secret', async () => {
    const started = performance.now();
    const report = (text: string) => {
      const minutes = ((performance.now() - started) / 60_000).toFixed(1);
      process.stderr.write(`${pool}: ${text} after ${minutes} minutes\n`);
    };
    await scale(pool, 1);
    const first = await waitUntilNodeIsReady(pool, () => true);
    report('ready');
    const [vmId = 0] = listVmsOfPool(site, pool);
    const [guest] = guests.get(vmId) ?? [];
    if (guest === undefined) throw new Error(`VM ${vmId} never booted`);
    expect(first.spec.providerID).toBe(`proxmox://lab/${vmId}`);
    expect(first.metadata.name).toBe(guest.agent.getHostName()['host-name']);
    const own = guest.agent
      .networkGetInterfaces()
      .flatMap((card) => card['ip-addresses'] ?? [])
      .map((each) => each['ip-address']);
    for (const address of addresses) expect(own).toContainEqual(expect.stringMatching(address));
    await waitUntil('seed and token are deleted', async () => {
      const tokens = await plane.api.list(TOKENS);
      return tokens.length === 0 && listLeftovers(site).isos.length === 0;
    });

    const { bootID } = first.status.nodeInfo;
    await guest.requestShutdown();
    report('off');
    const second = await waitUntilNodeIsReady(
      pool,
      (node) => node.status.nodeInfo.bootID !== bootID,
    );
    report('ready again, without the seed,');
    expect(second.metadata.uid).toBe(first.metadata.uid);
    expect(guests.get(vmId)?.at(-1)?.received).toEqual([]);

    await scale(pool, 0);
    await waitUntil('VM and Node are gone', async () => {
      const nodes = await listNodesOfPool(plane.api, pool);
      return nodes.length === 0 && listVmsOfPool(site, pool).length === 0;
    });
    const secrets = findSecrets(guest.received);
    expect(secrets.length).toBeGreaterThan(0);
    const files = extractDisk(guest.disk, plane.folder);
    expect(existsSync(join(files, 'etc/cloud/cloud-init.disabled'))).toBe(true);
    expect(findFilesWith(files, secrets)).toEqual([]);
    // A seed without secrets may stay where cloud-init keeps it.
    if (via === 'cloud-init')
      expect(findFilesWith(join(files, 'var/lib/cloud'), ['pvescaler-join'])).toEqual([]);
    report('searched');
  });
});

/** The secret part of each bootstrap token. */
function findSecrets(received: readonly string[]): readonly string[] {
  const tokens = received.flatMap((text) => [...text.matchAll(/\b[a-z0-9]{6}\.([a-z0-9]{16})\b/g)]);
  return [...new Set(tokens.map(([, secret = '']) => secret))];
}
