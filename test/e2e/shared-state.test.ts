// SPDX-License-Identifier: Apache-2.0
// Three replicas whose records are objects of the cluster: requests to any of them are carried out once, whatever happens to
// the replicas and the API server meanwhile.
import { describe, it } from 'vitest';
import { RpcClient } from '../interop/client.ts';
import { waitUntil } from './controlplane/index.ts';
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
import { countVmTasks, POOL, waitUntilReady } from './support/simulated-site.ts';
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
