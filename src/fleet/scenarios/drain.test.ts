// SPDX-License-Identifier: Apache-2.0
// Drains of a ready machine.
import { AUTOSCALER } from '../../model/intent.ts';
import { Unauthorized } from '../../ports/errors.ts';
import { aDrainTestFleet, protect, requestDrain } from '../testing/drain-test-fleet.ts';
import { aPool } from '../testing/settings.ts';
import { REASON } from '../testing/test-fleet.ts';
import { itTraces } from '../testing/trace.ts';

const MINUTE_MS = 60_000;
const DAEMON_SET = { kind: 'DaemonSet', name: 'logs', uid: 'uid-of-logs' };

itTraces('a drain', aDrainTestFleet, async (trace, testFleet) => {
  testFleet.putPod({ name: 'web-0' });
  testFleet.putPod({ name: 'logs', controller: DAEMON_SET });
  testFleet.cluster.state.volumeAttachments.push({ node: testFleet.nodeName, volume: 'data' });
  trace.note('the drain is requested');
  await requestDrain(testFleet);
  await trace.passes(8);
  await trace.result('status', testFleet.fleet.status());
  trace.note('the volume is detached');
  testFleet.cluster.state.volumeAttachments.splice(0);
  await trace.passes(14);
});

itTraces('a drain that times out', aDrainTestFleet, async (trace, testFleet) => {
  protect(testFleet, testFleet.putPod({ name: 'web-0' }));
  testFleet.putPod({ name: 'web-1' });
  trace.note('the drain is requested');
  const machines = [{ id: testFleet.id, reason: 'empty enough' }];
  await testFleet.fleet.drain({ ...REASON, machines, timeoutMs: 2 * MINUTE_MS });
  await trace.passes(8);
  trace.note('time passes');
  await testFleet.clock.advance(2 * MINUTE_MS);
  await trace.passes(6);
});

itTraces(
  'a drain that is forced after its timeout',
  () => aDrainTestFleet({ pool: { scaleDown: { ...aPool().scaleDown, onDrainTimeout: 'force' } } }),
  async (trace, testFleet) => {
    protect(testFleet, testFleet.putPod({ name: 'web-0' }));
    trace.note('the drain is requested');
    await testFleet.fleet.drain({ ...REASON, machines: [testFleet], timeoutMs: MINUTE_MS });
    await trace.passes(4);
    await testFleet.clock.advance(2 * MINUTE_MS);
    trace.note('time has passed');
    await trace.passes(12);
  },
);

itTraces('a drain that is cancelled', aDrainTestFleet, async (trace, testFleet) => {
  protect(testFleet, testFleet.putPod({ name: 'web-0' }));
  trace.note('the drain is requested');
  await requestDrain(testFleet);
  await trace.passes(4);
  trace.note('it is cancelled');
  await testFleet.fleet.cancelDrain([testFleet.id], REASON);
  await trace.passes(4);
});

itTraces(
  'a drain of the autoscaler that is refused',
  () => aDrainTestFleet({ checkDrain: () => Promise.resolve({ ok: false, reason: 'needed' }) }),
  async (trace, testFleet) => {
    testFleet.putPod({ name: 'web-0' });
    await requestDrain(testFleet, AUTOSCALER);
    await trace.passes(6);
  },
);

itTraces(
  'a drain of the autoscaler that is checked again',
  () => aDrainTestFleet({ checkDrain: () => Promise.resolve({ ok: true }) }),
  async (trace, testFleet) => {
    protect(testFleet, testFleet.putPod({ name: 'web-0' }));
    await requestDrain(testFleet, AUTOSCALER);
    await trace.passes(4);
    trace.note('another pod is bound to the Node');
    testFleet.putPod({ name: 'web-1' });
    await trace.passes(3);
    trace.note('the budget allows the eviction');
    testFleet.cluster.state.protectedPods.clear();
    await trace.passes(30);
  },
);

itTraces('a drain whose Node is deleted', aDrainTestFleet, async (trace, testFleet) => {
  protect(testFleet, testFleet.putPod({ name: 'web-0' }));
  await requestDrain(testFleet);
  await trace.passes(4);
  trace.note('the Node is deleted');
  testFleet.guests.behaviour = { neverRegisters: true };
  testFleet.cluster.state.removeNode(testFleet.nodeName);
  await trace.passes(12);
});

itTraces(
  'drains that are requested again',
  () => aDrainTestFleet({ checkDrain: () => Promise.resolve({ ok: true }) }),
  async (trace, testFleet) => {
    protect(testFleet, testFleet.putPod({ name: 'web-0' }));
    const request = (by: string, timeoutMs?: number) =>
      testFleet.fleet.drain({ by, reason: `by ${by}`, machines: [testFleet], timeoutMs });
    for (const by of [AUTOSCALER, AUTOSCALER, 'cli', AUTOSCALER, 'cli']) {
      trace.note(`requested by ${by}`);
      await request(by, 10 * MINUTE_MS);
      await trace.passes(3);
    }
    trace.note('cancelled twice, and requested again');
    await testFleet.fleet.cancelDrain([testFleet.id], REASON);
    await testFleet.fleet.cancelDrain([testFleet.id], REASON);
    await trace.passes(4);
    await request('cli', MINUTE_MS);
    await testFleet.fleet.cancelDrain([testFleet.id], { ...REASON, by: AUTOSCALER });
    await trace.passes(4);
    trace.note('removed while it is drained');
    await testFleet.fleet.remove([testFleet.id], REASON);
    await trace.passes(10);
  },
);

itTraces('a drain of pods that leave slowly', aDrainTestFleet, async (trace, testFleet) => {
  const { state } = testFleet.cluster;
  state.onEvicted = () => undefined;
  const pods = ['web-0', 'web-1', 'web-2', 'web-3', 'web-4'].map((name) =>
    testFleet.putPod({ name }),
  );
  testFleet.putPod({ name: 'old', isTerminating: true });
  testFleet.putPod({ name: 'job', isFinished: true });
  testFleet.putPod({ name: 'static', isMirror: true });
  await requestDrain(testFleet);
  await trace.passes(6);
  trace.note('some have left, and one cannot be evicted');
  for (const pod of pods.slice(0, 3)) state.removePod(pod);
  const refusal = new Unauthorized('PERMISSION_MISSING', 'forbidden');
  testFleet.cluster.failNext('evict', refusal);
  testFleet.putPod({ name: 'late' });
  await trace.passes(6);
  for (const name of ['web-3', 'web-4', 'old', 'late'])
    state.removePod({ namespace: 'default', name });
  await trace.passes(14);
});
