// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { CORDONED_BY_DRAIN, DRAIN_TAINT } from '../../model/drain.ts';
import { NO_RESOURCES } from '../../model/resources.ts';
import { TimedOut, Unauthorized, Unreachable } from '../../ports/errors.ts';
import {
  aDrainTestFleet,
  BUDGET,
  eventsOf,
  evictions,
  protect,
  RESTORED,
  requestDrain,
  restoredNode,
} from '../testing/drain-test-fleet.ts';
import { aJoiningPool, onlyMachine } from '../testing/joining-test-fleet.ts';
import { REGION } from '../testing/settings.ts';
import {
  existingResources,
  journalReasonsIn,
  onePass,
  phasesIn,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

const MINUTE_MS = 60_000;
/** What a drain waits for while its region cannot be read. */
const UNREADABLE = { object: `Proxmox region ${REGION}`, reason: 'it cannot be read' };
const DAEMON_SET = { kind: 'DaemonSet', name: 'logs', uid: 'uid-of-logs' };

describe('a drain', () => {
  it('evicts the largest pods first, by CPU or memory, so that the others fill the gaps', async () => {
    const testFleet = await aDrainTestFleet();
    const gib = 2 ** 30;
    const requests = (cpuMilli: number, memoryBytes: number) => ({
      requests: { ...NO_RESOURCES, cpuMilli, memoryBytes },
    });
    testFleet.putPod({ name: 'a-small', ...requests(100, gib / 10) });
    testFleet.putPod({ name: 'b-cpu', ...requests(900, gib / 10) });
    testFleet.putPod({ name: 'c-memory', ...requests(100, 3 * gib) });
    await requestDrain(testFleet);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(evictions(testFleet)).toEqual(['c-memory', 'b-cpu', 'a-small']);
  });

  it('taints, cordons, evicts, and then deletes the VM and the Node, in this order', async () => {
    const testFleet = await aDrainTestFleet();
    const { cluster, hypervisor, nodeName } = testFleet;
    testFleet.putPod({ name: 'web-0' });
    const order: string[] = [];
    cluster.onCall = ({ method }) => {
      const { taints, unschedulable } = cluster.state.nodes.get(nodeName) ?? {};
      const taint = taints?.find(({ key }) => key === DRAIN_TAINT.key);
      const vms = existingResources(hypervisor).vms.length;
      if (['podsOn', 'evict', 'deleteNode', 'attachedVolumes'].includes(method))
        order.push(
          `${method}: taint '${taint?.value ?? 'none'}', cordon ${unschedulable}, VMs ${vms}`,
        );
    };
    await requestDrain(testFleet);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(order).toEqual([
      "podsOn: taint '', cordon false, VMs 1",
      `podsOn: taint '${CORDONED_BY_DRAIN}', cordon true, VMs 1`,
      `evict: taint '${CORDONED_BY_DRAIN}', cordon true, VMs 1`,
      `podsOn: taint '${CORDONED_BY_DRAIN}', cordon true, VMs 1`,
      `attachedVolumes: taint '${CORDONED_BY_DRAIN}', cordon true, VMs 1`,
      `deleteNode: taint '${CORDONED_BY_DRAIN}', cordon true, VMs 0`,
    ]);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    expect(cluster.state.nodes.size).toBe(0);
    expect(eventsOf(testFleet)).toEqual(
      expect.arrayContaining(['Normal DrainStarted', 'Normal DrainCompleted']),
    );
  });

  it('whose progress was lost by a crash still uncordons the Node when it is undone', async () => {
    const testFleet = await aDrainTestFleet();
    const { cluster, nodeName, store, id } = testFleet;
    protect(testFleet, testFleet.putPod({ name: 'web-0' }));
    await requestDrain(testFleet);
    const drain = await testFleet.untilDrain('evicting');
    await runPasses(testFleet, 2);
    expect(cluster.state.nodes.get(nodeName)?.unschedulable).toBe(true);
    const seen = (await store.drains.get(id)) ?? expect.unreachable('there is no drain');
    await store.drains.replace(seen, { ...drain, state: 'wanted', isCordonedByDrain: false });
    await testFleet.untilDrain('evicting');
    await testFleet.fleet.cancelDrain([id], REASON);
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
  });

  it('evicts neither mirror pods nor pods of DaemonSets nor finished pods', async () => {
    const testFleet = await aDrainTestFleet();
    testFleet.putPod({ name: 'static', isMirror: true });
    testFleet.putPod({ name: 'logs', controller: DAEMON_SET });
    testFleet.putPod({ name: 'job', isFinished: true });
    await requestDrain(testFleet);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(evictions(testFleet)).toEqual([]);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('waits for terminating pods, and evicts none of them again', async () => {
    const testFleet = await aDrainTestFleet();
    const { cluster } = testFleet;
    cluster.state.onEvicted = () => undefined;
    const old = testFleet.putPod({ name: 'old', isTerminating: true });
    const web = testFleet.putPod({ name: 'web-0' });
    await requestDrain(testFleet);
    await runPasses(testFleet, 20);
    expect(evictions(testFleet)).toEqual(['web-0']);
    const { blockedBy } = await testFleet.untilDrain('evicting');
    expect(blockedBy).toEqual([
      { object: 'default/old', reason: 'it is terminating' },
      { object: 'default/web-0', reason: 'it is terminating' },
    ]);
    for (const pod of [old, web]) cluster.state.removePod(pod);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('evicts a pod that was bound to the Node after the taint, and one that tolerates it', async () => {
    const testFleet = await aDrainTestFleet();
    const { cluster } = testFleet;
    let isBound = false;
    cluster.onCall = ({ method }) => {
      if (method === 'podsOn' && !isBound) {
        isBound = true;
        testFleet.putPod({ name: 'late' });
      }
    };
    cluster.state.volumeAttachments.push({ node: testFleet.nodeName, volume: 'data' });
    await requestDrain(testFleet);
    await testFleet.untilDrain('waiting-for-volumes');
    expect(evictions(testFleet)).toEqual(['late']);
    testFleet.putPod({ name: 'tolerating' });
    cluster.state.volumeAttachments.splice(0);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(evictions(testFleet)).toEqual(['late', 'tolerating']);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('waits while a PodDisruptionBudget blocks, records why, and ends when it allows', async () => {
    const testFleet = await aDrainTestFleet();
    protect(testFleet, testFleet.putPod({ name: 'web-0' }));
    testFleet.putPod({ name: 'other' });
    await requestDrain(testFleet);
    await runPasses(testFleet, 60);
    const tries = evictions(testFleet).filter((name) => name === 'web-0').length;
    // Ten seconds apart after the first few.
    expect(tries).toBeGreaterThan(5);
    expect(tries).toBeLessThan(12);
    expect(await testFleet.drain()).toMatchObject({
      state: 'evicting',
      blockedBy: [{ object: 'default/web-0', reason: BUDGET }],
    });
    expect(eventsOf(testFleet)).toContain('Warning DrainBlocked');
    const reasons = await journalReasonsIn(testFleet.store);
    expect(reasons.filter((reason) => reason === 'DrainBlocked')).toHaveLength(1);
    testFleet.cluster.state.protectedPods.clear();
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('goes on with the other pods when one cannot be evicted for another reason', async () => {
    const testFleet = await aDrainTestFleet();
    testFleet.putPod({ name: 'a' });
    testFleet.putPod({ name: 'b' });
    const refusal = new Unauthorized('PERMISSION_MISSING', 'a webhook refused it');
    testFleet.cluster.failNext('evict', refusal);
    await requestDrain(testFleet);
    const { blockedBy } = await testFleet.untilDrain('evicting');
    expect(blockedBy).toContainEqual({
      object: 'default/a',
      reason: 'a webhook refused it',
    });
    expect(evictions(testFleet)).toEqual(['a', 'b']);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('evicts no further pod while the API server does not respond', async () => {
    const testFleet = await aDrainTestFleet();
    testFleet.putPod({ name: 'a' });
    testFleet.putPod({ name: 'b' });
    testFleet.cluster.failNext('evict', new TimedOut('REQUEST_TIMED_OUT', 'no response'));
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    expect(evictions(testFleet)).toEqual(['a']);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(evictions(testFleet)).toEqual(['a', 'a', 'b']);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('waits until volumes are detached, except those of DaemonSet pods', async () => {
    const testFleet = await aDrainTestFleet();
    const { cluster, nodeName: node } = testFleet;
    const claim = { namespace: 'default', name: 'logs' };
    const volumes = [{ kind: 'claim', claimName: 'logs' } as const];
    testFleet.putPod({ name: 'logs', controller: DAEMON_SET, volumes });
    cluster.state.volumeAttachments.push({ node, volume: 'pv-logs', claim });
    cluster.state.volumeAttachments.push({ node, volume: 'pv-data' });
    await requestDrain(testFleet);
    await runPasses(testFleet, 30);
    expect(await testFleet.drain()).toMatchObject({
      state: 'waiting-for-volumes',
      blockedBy: [{ object: 'volume pv-data', reason: 'it is still attached' }],
    });
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
    cluster.state.volumeAttachments.pop();
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('waits for neither pods nor volumes of a kubelet that is dead', async () => {
    const testFleet = await aDrainTestFleet();
    const { cluster, nodeName: node, clock } = testFleet;
    cluster.state.onEvicted = () => undefined;
    testFleet.putPod({ name: 'web-0' });
    cluster.state.volumeAttachments.push({ node, volume: 'pv-data' });
    testFleet.guests.behaviour = { neverReady: true };
    cluster.state.updateNode(node, { ready: false, readyChangedAt: clock.now() });
    await requestDrain(testFleet);
    await runPasses(testFleet, 60);
    expect(await phasesIn(testFleet.store)).toEqual(['draining']);
    await runPasses(testFleet, 90);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('changes nothing while Kubernetes cannot be read, and deletes no VM', async () => {
    const testFleet = await aDrainTestFleet();
    testFleet.putPod({ name: 'web-0' });
    await requestDrain(testFleet);
    await testFleet.untilDrain('tainted');
    testFleet.cluster.disconnect();
    await testFleet.clock.advance(3 * MINUTE_MS);
    await runPasses(testFleet, 30);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
    expect(await testFleet.drain()).toMatchObject({ state: 'tainted' });
    testFleet.cluster.reconnect();
    await untilAtRest(testFleet.fleet, testFleet);
    expect(evictions(testFleet)).toEqual(['web-0']);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('begins when Kubernetes can be read again, if it was requested before', async () => {
    const testFleet = await aDrainTestFleet();
    testFleet.putPod({ name: 'web-0' });
    testFleet.cluster.disconnect();
    await testFleet.clock.advance(2 * MINUTE_MS);
    await requestDrain(testFleet);
    await runPasses(testFleet, 10);
    expect(await phasesIn(testFleet.store)).toEqual(['draining']);
    testFleet.cluster.reconnect();
    await untilAtRest(testFleet.fleet, testFleet);
    expect(evictions(testFleet)).toEqual(['web-0']);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('of a machine without a Node deletes it at once', async () => {
    const testFleet = await aDrainTestFleet();
    testFleet.cluster.state.removeNode(testFleet.nodeName);
    testFleet.guests.behaviour = { neverRegisters: true };
    await requestDrain(testFleet);
    await onePass(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['deleting']);
    expect(await testFleet.drain()).toBeUndefined();
  });

  it('by a person goes on when its Node was registered again', async () => {
    const testFleet = await aDrainTestFleet();
    const { cluster, nodeName } = testFleet;
    protect(testFleet, testFleet.putPod({ name: 'web-0' }));
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    const node = cluster.state.nodes.get(nodeName)!;
    cluster.state.removeNode(nodeName);
    cluster.state.putNode({ ...node, uid: 'another', taints: [], unschedulable: false });
    cluster.state.protectedPods.clear();
    await untilAtRest(testFleet.fleet, testFleet);
    expect(evictions(testFleet)).toContain('web-0');
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('does not count towards the target, but towards the limits until it is done', async () => {
    const limits = { min: 0, max: 1, cpu: 0, memoryBytes: 0 };
    const testFleet = await aDrainTestFleet({ pool: { limits } });
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet);
    const refusal = { code: 'POOL_AT_MAXIMUM' };
    await expect(testFleet.fleet.request('workers', 1, REASON)).rejects.toMatchObject(refusal);
    await testFleet.untilDrain('evicting');
    const { pools } = await testFleet.fleet.status();
    expect(pools).toMatchObject([{ target: 0, ready: 0, deleting: 1 }]);
    await expect(testFleet.fleet.request('workers', 1, REASON)).rejects.toMatchObject(refusal);
    await testFleet.fleet.cancelDrain([testFleet.id], REASON);
    await runPasses(testFleet, 3);
    expect((await testFleet.fleet.status()).pools).toMatchObject([{ target: 1, ready: 1 }]);
  });

  it('of a machine of the minimum is replaced at once', async () => {
    const limits = { min: 1, max: 2, cpu: 0, memoryBytes: 0 };
    const testFleet = await aDrainTestFleet({ pool: { limits } });
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet);
    await runPasses(testFleet, 60);
    expect((await phasesIn(testFleet.store)).toSorted()).toEqual(['draining', 'ready']);
  });
});

describe('a drain is undone', () => {
  it('at its timeout, and the machine counts as ready again', async () => {
    const testFleet = await aDrainTestFleet();
    protect(testFleet, testFleet.putPod({ name: 'web-0' }));
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    await testFleet.clock.advance(10 * MINUTE_MS);
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
    expect(await testFleet.drain()).toMatchObject({
      state: 'undone',
      undo: {
        cause: 'timed-out',
        message: `it was not drained within 10m: default/web-0: ${BUDGET}`,
      },
    });
    expect(await journalReasonsIn(testFleet.store)).toContain('DrainTimedOut');
    expect(eventsOf(testFleet)).toContain('Warning DrainTimedOut');
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
  });

  it('at the timeout of the request', async () => {
    const testFleet = await aDrainTestFleet();
    protect(testFleet, testFleet.putPod());
    const machines = [{ id: testFleet.id, reason: 'idle' }];
    await testFleet.fleet.drain({ ...REASON, machines, timeoutMs: 20_000 });
    await runPasses(testFleet, 40);
    await onlyMachine(testFleet, 'ready');
    expect(await testFleet.drain()).toMatchObject({ reason: 'idle', undo: { cause: 'timed-out' } });
    const entries = await testFleet.store.journal.read();
    const end = entries.find(({ reason }) => reason === 'DrainTimedOut');
    // Not only at the next try of an eviction.
    expect(end?.numbers?.['seconds']).toBeLessThanOrEqual(22);
  });

  it('at its timeout also while Proxmox cannot be read', async () => {
    const testFleet = await aDrainTestFleet();
    const { hypervisor, clock } = testFleet;
    testFleet.cluster.state.onEvicted = () => undefined;
    testFleet.putPod({ name: 'web-0' });
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    hypervisor.onCall = () => {
      throw new Unreachable('PVE_UNREACHABLE', 'connection refused');
    };
    await runPasses(testFleet, 5);
    testFleet.putPod({ name: 'late' });
    await runPasses(testFleet, 5);
    expect(evictions(testFleet)).toEqual(['web-0']);
    expect(await testFleet.drain()).toMatchObject({ state: 'evicting', blockedBy: [UNREADABLE] });
    expect(eventsOf(testFleet)).toContain('Warning DrainBlocked');
    await clock.advance(10 * MINUTE_MS);
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
    expect(await testFleet.drain()).toMatchObject({
      undo: {
        cause: 'timed-out',
        message: `it was not drained within 10m: ${UNREADABLE.object}: ${UNREADABLE.reason}`,
      },
    });
  });

  it('when it is cancelled while Proxmox cannot be read', async () => {
    const testFleet = await aDrainTestFleet();
    const { hypervisor, fleet, id } = testFleet;
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    hypervisor.onCall = () => {
      throw new Unreachable('PVE_UNREACHABLE', 'connection refused');
    };
    await runPasses(testFleet, 5);
    await fleet.cancelDrain([id], REASON);
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
  });

  it('at its timeout also during a back-off after an error', async () => {
    const testFleet = await aDrainTestFleet();
    testFleet.putPod();
    const machines = [{ id: testFleet.id }];
    testFleet.cluster.onCall = ({ method }) => {
      if (method === 'podsOn') throw new Unauthorized('PERMISSION_MISSING', 'may not list pods');
    };
    await testFleet.fleet.drain({ ...REASON, machines, timeoutMs: 100_000 });
    await runPasses(testFleet, 150);
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
  });

  it('not at its timeout with onDrainTimeout: force', async () => {
    const { scaleDown } = aJoiningPool();
    const pool = { scaleDown: { ...scaleDown, onDrainTimeout: 'force' as const } };
    const testFleet = await aDrainTestFleet({ pool });
    protect(testFleet, testFleet.putPod({ name: 'web-0' }));
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    await testFleet.clock.advance(10 * MINUTE_MS);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    const forced = (await testFleet.store.journal.read()).find(
      ({ reason }) => reason === 'DrainForced',
    );
    expect(forced?.message).toContain('default/web-0');
    expect(eventsOf(testFleet)).toContain('Warning DrainForced');
  });

  it('and not forced before Kubernetes was readable for a minute', async () => {
    const { scaleDown } = aJoiningPool();
    const pool = { scaleDown: { ...scaleDown, onDrainTimeout: 'force' as const } };
    const testFleet = await aDrainTestFleet({ pool });
    testFleet.putPod({ name: 'web-0' });
    testFleet.cluster.state.onEvicted = () => undefined;
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    testFleet.cluster.disconnect();
    await testFleet.clock.advance(20 * MINUTE_MS);
    await runPasses(testFleet, 3);
    testFleet.cluster.reconnect();
    await runPasses(testFleet, 40);
    expect(await phasesIn(testFleet.store)).toEqual(['draining']);
    await runPasses(testFleet, 60);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('on request', async () => {
    const testFleet = await aDrainTestFleet();
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    await testFleet.fleet.cancelDrain([testFleet.id], { by: 'autoscaler', reason: 'it is needed' });
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
    expect(await testFleet.drain()).toMatchObject({
      state: 'undone',
      undo: { cause: 'cancelled', message: 'autoscaler: it is needed' },
    });
  });

  it('when a person uncordons the Node', async () => {
    const testFleet = await aDrainTestFleet();
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    await runPasses(testFleet, 2);
    testFleet.cluster.state.updateNode(testFleet.nodeName, { unschedulable: false });
    await testFleet.untilDrain('undone');
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
    expect((await testFleet.drain())?.undo?.message).toBe('the Node was uncordoned');
  });

  it('when a person removes the taint', async () => {
    const testFleet = await aDrainTestFleet();
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    await runPasses(testFleet, 2);
    testFleet.cluster.state.updateNode(testFleet.nodeName, { taints: [] });
    await testFleet.untilDrain('undone');
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
  });

  it('and leaves a Node cordoned that was cordoned before', async () => {
    const testFleet = await aDrainTestFleet();
    testFleet.cluster.state.updateNode(testFleet.nodeName, { unschedulable: true });
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    await testFleet.fleet.cancelDrain([testFleet.id], REASON);
    expect(await restoredNode(testFleet)).toEqual({ taints: [], unschedulable: true });
  });

  it('only when Kubernetes can be changed again', async () => {
    const testFleet = await aDrainTestFleet();
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    testFleet.cluster.disconnect();
    await testFleet.fleet.cancelDrain([testFleet.id], REASON);
    await testFleet.clock.advance(2 * MINUTE_MS);
    await runPasses(testFleet, 5);
    expect(await phasesIn(testFleet.store)).toEqual(['draining']);
    testFleet.cluster.reconnect();
    await runPasses(testFleet, 40);
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
  });

  it.each([
    ['back', -60 * MINUTE_MS],
    ['forward', 60 * MINUTE_MS],
  ])('after its whole time if the clock is set %s meanwhile', async (_how, changeMs) => {
    const testFleet = await aDrainTestFleet();
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    testFleet.clock.setWallClock(testFleet.clock.now() + changeMs);
    await runPasses(testFleet, 3);
    await testFleet.clock.advance(4 * MINUTE_MS);
    await runPasses(testFleet, 3);
    expect(await phasesIn(testFleet.store)).toEqual(['draining']);
    await testFleet.clock.advance(6 * MINUTE_MS);
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
  });

  it('and its record is removed after an hour', async () => {
    const testFleet = await aDrainTestFleet();
    await requestDrain(testFleet);
    await testFleet.fleet.cancelDrain([testFleet.id], REASON);
    await testFleet.untilDrain('undone');
    await testFleet.clock.advance(61 * MINUTE_MS);
    await runPasses(testFleet, 1);
    expect(await testFleet.drain()).toBeUndefined();
  });

  it('and can be requested again', async () => {
    const testFleet = await aDrainTestFleet();
    testFleet.putPod();
    await requestDrain(testFleet);
    await testFleet.fleet.cancelDrain([testFleet.id], REASON);
    await testFleet.untilDrain('undone');
    await requestDrain(testFleet);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('if the database was lost', async () => {
    const testFleet = await aDrainTestFleet();
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet);
    await testFleet.untilDrain('evicting');
    await runPasses(testFleet, 2);
    const known = await testFleet.store.machines.get(testFleet.id);
    await testFleet.store.machines.remove(known!);
    const drain = await testFleet.store.drains.get(testFleet.id);
    await testFleet.store.drains.remove(drain!);
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
  });
});
