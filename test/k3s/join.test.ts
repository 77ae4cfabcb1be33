// SPDX-License-Identifier: Apache-2.0
// Machines of `serve` join a real k3s with the product's own token, files and scripts. They are restarted after the secret
// was removed and after the cluster's CA was rotated. K3S names the binary; without it the tests are skipped.
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { waitUntil } from '../e2e/controlplane/index.ts';
import { listNodesOfPool, type NodeObject } from '../e2e/support/kube-objects.ts';
import { POOL, startSite, waitUntilReady } from '../e2e/support/simulated-site.ts';
import { findFilesWith } from '../guest/disk-search.ts';
import { K3sGuest } from './k3s-guest.ts';
import { K3sServer, serveDownloads } from './k3s-server.ts';

const path = process.env['K3S'] ?? '';
const VERSION = process.env['K3S_VERSION'] ?? 'v1.36.3+k3s1';
const LIMIT_MS = 180_000;
if (path === '') process.stderr.write('k3s is not tested: set K3S to the path of a k3s binary\n');

async function joinOneMachine(server: K3sServer) {
  const downloads = await serveDownloads(path);
  onTestFinished(() => void downloads.server.close());
  const disks = mkdtempSync(join(server.folder, 'disks-'));
  const guests: K3sGuest[] = [];
  onTestFinished(({ task }) => {
    for (const guest of guests) {
      guest.stop();
      if (task.result?.state === 'fail')
        process.stderr.write(`--- guest\n${guest.log().split('\n').slice(-40).join('\n')}\n`);
    }
  });
  const site = await startSite({
    plane: server,
    distribution: 'k3s',
    join: {
      k3s: {
        server: server.supervisor,
        version: VERSION,
        token: 'auto',
        downloadUrl: downloads.url,
        sha256: createHash('sha256').update(readFileSync(path)).digest('hex'),
        agentArgs: ['--kubelet-arg=fail-cgroupv1=false'],
      },
    },
    simulator: {
      createGuest: (input) => {
        const guest = new K3sGuest(input, disks);
        guests.push(guest);
        return guest;
      },
    },
  });
  onTestFinished(() => site.close());
  await waitUntilReady(await site.serve('serve'));
  await site.runCli('pool', 'scale', POOL, '--to', '1', '--timeout', '10s');
  const guest = await waitUntil(
    'the agent has joined',
    () => {
      const [first] = guests;
      return first !== undefined && first.count('FIRST BOOT') > 0 ? first : undefined;
    },
    LIMIT_MS,
  );
  expect(guest.count('FIRST BOOT 0')).toBe(1);
  return guest;
}

async function findNode(server: K3sServer): Promise<NodeObject> {
  const [node] = await listNodesOfPool(server.api, POOL);
  if (node === undefined) throw new Error('the node has not registered');
  return node;
}

/** The kubelet has reported its status after this time. */
async function waitForStatusAfter(server: K3sServer, startMs: number): Promise<void> {
  await waitUntil(
    'the kubelet reports its status',
    async () => {
      const { status } = await findNode(server);
      return status.conditions.some(
        (each) =>
          Date.parse((each as { lastHeartbeatTime?: string }).lastHeartbeatTime ?? '') > startMs,
      );
    },
    LIMIT_MS,
  );
}

async function restart(server: K3sServer, guest: K3sGuest): Promise<void> {
  const startMs = Date.now();
  await guest.reboot();
  await waitForStatusAfter(server, startMs - 1_000);
  expect(guest.count('EXIT')).toBe(0);
}

async function deleteTokens(server: K3sServer): Promise<void> {
  const type = 'fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken';
  await server.api.call('DELETE', `/api/v1/namespaces/kube-system/secrets?${type}`);
}

describe.skipIf(path === '')('a k3s agent with the files of the product', () => {
  it('joins, and starts again without a secret and after a rotation of the CA', async () => {
    const server = new K3sServer(path);
    onTestFinished(() => server.stop());
    await server.start();
    expect(server.countCas()).toBe(1);
    const guest = await joinOneMachine(server);
    const { spec, metadata } = await findNode(server);
    expect(spec.providerID).toMatch(/^proxmox:\/\/lab\/\d+$/);
    expect(metadata.labels).toMatchObject({ tier: 'small', 'autoscaler.proxmox/group': POOL });
    const [hash, secret = ''] = guest.token.split('::');
    expect(guest.readFile('/var/lib/pvescaler/join-token')).toBe(
      `${hash}::none00.0000000000000000`,
    );
    expect(findFilesWith(guest.folder, [secret])).toEqual([]);

    await deleteTokens(server);
    await restart(server, guest);

    await server.rotateCas();
    expect(server.countCas()).toBe(4);
    await restart(server, guest);
    expect(guest.readFile('/var/lib/pvescaler/join-token')).not.toContain(hash);
    await restart(server, guest);
  });

  it('joins a cluster whose CA has several certificates, and starts again', async () => {
    const server = new K3sServer(path);
    onTestFinished(() => server.stop());
    server.installCustomCas();
    await server.start();
    expect(server.countCas()).toBe(3);
    const guest = await joinOneMachine(server);
    expect((await findNode(server)).metadata.labels).toMatchObject({ tier: 'small' });
    await deleteTokens(server);
    await restart(server, guest);
  });
});
