// SPDX-License-Identifier: Apache-2.0
// Mode standalone on a real control plane: the API server is down for a minute, and the leader is killed in the middle of a
// scale-up, of a drain and of a deletion.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/system/index.ts';
import { waitUntil } from './controlplane/index.ts';
import { listEvictions } from './support/eviction-record.ts';
import { countVmTasks } from './support/simulated-site.ts';
import { IS_SAMPLE, LIMIT_MS, StandaloneSite } from './support/standalone-site.ts';

const TEST_MS = 3 * LIMIT_MS;
const OUTAGE_MS = 60_000;
const SMALL = { cpu: '100m', memory: '50Mi' };
const ON_SMALL = { nodeSelector: { tier: 'small' } };
/** A pod on each machine of pool workers. */
const WIDE = { name: 'wide', requests: { cpu: '1200m', memory: '300Mi' }, pod: ON_SMALL };

let env: StandaloneSite;
beforeAll(async () => {
  env = await StandaloneSite.start();
  await env.serve('first');
});
afterAll(() => env.close());

function countCreations(): number {
  return env.site.writes.filter(({ call }) => /^POST .*\/qemu$/.test(call)).length;
}

it.skipIf(IS_SAMPLE)(
  'loses nothing and creates nothing twice while the API server is down for a minute',
  async () => {
    const before = countVmTasks(env.site);
    await env.deploy({ ...WIDE, replicas: 4 });
    await env.site.waitForCreations(2);
    await env.plane.killApiServer();
    await systemClock.sleep(OUTAGE_MS);
    expect(countVmTasks(env.site).destroyed).toBe(before.destroyed);
    await env.plane.startApiServer();
    await env.waitUntilRunning('wide', 4);
    await env.expectSettled();
    expect(countVmTasks(env.site).created).toBe(before.created + 4);
    await env.removeWorkloads();
  },
  TEST_MS,
);

it(
  'a second replica finishes the scale-up of a leader that was killed',
  async () => {
    const { replica: leader } = env;
    const { created } = countVmTasks(env.site);
    const before = countCreations();
    await env.serve('second');
    await env.deploy({ ...WIDE, replicas: 6 });
    await env.site.waitForCreations(before + 2);
    leader.program.sendSignal('SIGKILL');
    await env.waitUntilRunning('wide', 6);
    await env.expectSettled();
    expect(countVmTasks(env.site).created).toBe(created + 6);
    expect(await env.replica.isLeading()).toBe(true);
    await env.removeWorkloads();
  },
  TEST_MS,
);

it.skipIf(IS_SAMPLE)(
  'the leader finishes a drain during which it was killed, within the budget of its pods',
  async () => {
    // A pod ends 3 s after its eviction, so that the process is killed between two evictions.
    const lifecycle = { preStop: { sleep: { seconds: 600 } } };
    const guarded = {
      name: 'guarded',
      replicas: 16,
      requests: SMALL,
      pod: { ...ON_SMALL, terminationGracePeriodSeconds: 600 },
      container: { lifecycle },
      maxUnavailable: 1,
    };
    await env.deploy({ ...WIDE, replicas: 8 });
    await env.waitUntilRunning('wide', 8);
    await env.deploy(guarded);
    await env.waitUntilRunning('guarded', 16);
    const before = listEvictions(env.plane).length;
    await env.scale('wide', 3);
    await waitUntil('the first eviction', () => listEvictions(env.plane).length > before, LIMIT_MS);
    await env.killAndRestart();
    await waitUntil('there are fewer machines', () => env.machines.length < 6, LIMIT_MS);
    await env.expectSettled();
    await env.removeWorkloads();
  },
  TEST_MS,
);

it(
  'the leader finishes a deletion during which it was killed',
  async () => {
    await env.deploy({ ...WIDE, replicas: 4 });
    await env.waitUntilRunning('wide', 4);
    const before = env.site.writes.length;
    const deletion = () =>
      env.site.writes.slice(before).some(({ call }) => /status\/(shutdown|stop)$/.test(call));
    await env.scale('wide', 1);
    await waitUntil('the first VM is stopped', deletion, LIMIT_MS);
    await env.killAndRestart();
    await env.expectSettled();
    await env.removeWorkloads();
    const { created, destroyed } = countVmTasks(env.site);
    expect(destroyed).toBe(created);
  },
  TEST_MS,
);
