// SPDX-License-Identifier: Apache-2.0
// Three replicas whose records are objects of the cluster: requests to any of them are carried out once, whatever happens to
// the replicas and the API server meanwhile.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'vitest';
import { RpcClient } from '../interop/client.ts';
import { startControlPlane, waitUntil } from './controlplane/index.ts';
import { accountKubeconfig, applyManifests, applyStateManifests } from './support/manifests.ts';
import {
  findFollower,
  increaseSize,
  NAMES,
  requireLeader,
  scaleToZero,
  startReplica,
  startReplicaSet,
  TAKEOVER_MS,
  targetSize,
  waitForNodes,
  watchCalls,
} from './support/replica-set.ts';
import { countVmTasks, POOL, startSite, waitUntilReady } from './support/simulated-site.ts';
import { IS_SAMPLE } from './support/standalone-site.ts';

/** The autoscaler's default `--scan-interval`. */
const LOOP_MS = 10_000;

describe.concurrent('three replicas with records in the cluster', () => {
  it(
    'create exactly 50 machines while each of them is replaced, and no call fails for longer than a loop',
    async (context) => {
      const set = await startReplicaSet(context);
      const { expect, site, client, replicas } = set;
      const calls = watchCalls(set);
      const begun = site.waitForCreations(5);
      await increaseSize(client, 30);
      expect(await targetSize(client)).toBe(30);
      await begun;
      for (const [index, name] of NAMES.entries()) {
        replicas.get(name)?.program.sendSignal('SIGTERM');
        expect(await replicas.get(name)?.program.waitForExit()).toBe(0);
        await increaseSize(client, index === 2 ? 6 : 7);
        await startReplica(set, name);
      }
      await waitForNodes(set, 50);
      const { longestMs, errors } = await calls.end();
      expect(longestMs, errors.join('\n')).toBeLessThan(LOOP_MS);
      expect(countVmTasks(site)).toMatchObject({ created: 50 });
      await scaleToZero(set, 50);
    },
    4 * TAKEOVER_MS,
  );

  it(
    'carry out a request to a replica that does not lead, also when the leader is killed',
    async (context) => {
      const set = await startReplicaSet(context);
      const { expect, site } = set;
      const leader = await requireLeader(set);
      const follower = await findFollower(set);
      const direct = new RpcClient(follower.grpc, 'c.proto');
      context.onTestFinished(() => direct.close());
      const begun = site.waitForCreations(3);
      await direct.call('NodeGroupIncreaseSize', { id: POOL, delta: 6 });
      expect(await targetSize(direct)).toBe(6);
      await begun;
      leader.program.sendSignal('SIGKILL');
      await direct.call('NodeGroupIncreaseSize', { id: POOL, delta: 4 });
      expect(await targetSize(direct)).toBe(10);
      await waitForNodes(set, 10);
      expect(countVmTasks(site)).toMatchObject({ created: 10 });
      await scaleToZero(set, 10);
    },
    4 * TAKEOVER_MS,
  );

  it.skipIf(IS_SAMPLE)(
    'lose and repeat nothing when the API server is restarted and the leader is frozen and woken',
    async (context) => {
      const set = await startReplicaSet(context);
      const { expect, plane, site, client } = set;
      const begun = site.waitForCreations(3);
      await increaseSize(client, 8);
      await begun;
      await plane.killApiServer();
      const stale = await findFollower(set);
      await waitUntil(
        'a replica is not ready',
        async () => {
          const answer = await fetch(`${stale.health}/readyz`);
          return answer.status === 503 && (await answer.text()).includes('current records');
        },
        TAKEOVER_MS,
      );
      await plane.startApiServer();
      await waitForNodes(set, 8);
      const more = site.waitForCreations(10);
      await increaseSize(client, 8);
      await more;
      const frozen = await requireLeader(set);
      frozen.program.sendSignal('SIGSTOP');
      await waitUntil(
        'another replica leads',
        async () => {
          for (const replica of set.replicas.values())
            if (replica !== frozen && (await replica.isLeading())) return true;
          return false;
        },
        TAKEOVER_MS,
      );
      const before = site.writes.length;
      await waitForNodes(set, 16);
      frozen.program.sendSignal('SIGCONT');
      await waitUntil('it no longer leads', async () => !(await frozen.isLeading()));
      await waitUntilReady(frozen);
      await scaleToZero(set, 16);
      const late = site.writes.slice(before).filter(({ replica }) => replica === frozen.name);
      expect(late).toEqual([]);
    },
    6 * TAKEOVER_MS,
  );
});

it(
  'the records of a database move into the cluster and back, while no driver is active',
  async (context) => {
    const { expect, onTestFinished } = context;
    const plane = await startControlPlane();
    onTestFinished(() => plane.stop());
    await applyManifests(plane);
    await applyStateManifests(plane);
    const kubeconfig = await accountKubeconfig(plane);
    const site = await startSite({
      plane,
      distribution: 'kubeadm',
      kubeconfig,
      stores: 'separate',
    });
    onTestFinished(() => site.close());
    const file = join(site.folder, 'state.json');
    const first = await site.serve('a');
    await waitUntilReady(first);
    expect(await site.startCli('a', 'pool', 'scale', POOL, '--to', '2').ended).toMatchObject({
      exitCode: 0,
    });
    expect(await site.startCli('a', 'state', 'export', file).ended).toMatchObject({ exitCode: 5 });
    first.program.sendSignal('SIGTERM');
    await first.program.waitForExit();
    expect(await site.startCli('a', 'state', 'export', file).ended).toMatchObject({ exitCode: 0 });
    site.stores = 'kubernetes';
    const imported = await site.startCli('b', 'state', 'import', file).ended;
    expect(imported).toMatchObject({ exitCode: 0, err: '' });
    expect(imported.out).toContain('imported 2 machines');
    const path = '/apis/pvescaler.dev/v1alpha1/namespaces/pvescaler/proxmoxmachines';
    const { items } = await plane.api.callOrThrow<{ items: readonly object[] }>('GET', path);
    expect(items).toHaveLength(2);
    const second = await site.serve('b');
    await waitUntilReady(second);
    await waitUntil('it leads', () => second.isLeading(), TAKEOVER_MS);
    expect(await site.startCli('c', 'pool', 'scale', POOL, '--to', '3').ended).toMatchObject({
      exitCode: 0,
    });
    expect(countVmTasks(site)).toEqual({ created: 3, destroyed: 0 });
    second.program.sendSignal('SIGTERM');
    await second.program.waitForExit();
    const back = join(site.folder, 'back.json');
    expect(await site.startCli('c', 'state', 'export', back).ended).toMatchObject({ exitCode: 0 });
    site.stores = 'separate';
    expect((await site.startCli('d', 'state', 'import', back).ended).out).toContain('3 machines');
    const { records } = JSON.parse(readFileSync(back, 'utf8'));
    expect(Object.keys(records.machines)).toHaveLength(3);
  },
  4 * TAKEOVER_MS,
);
