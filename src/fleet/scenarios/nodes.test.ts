// SPDX-License-Identifier: Apache-2.0
// The Node of a machine changes, disappears, or is another's.
import { InvalidRequest, NotFound, Unauthorized, Unreachable } from '../../ports/errors.ts';
import { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { aDrainTestFleet, protect, requestDrain } from '../testing/drain-test-fleet.ts';
import {
  aJoiningPool,
  aJoiningSeed,
  aJoiningTestFleet,
  aReadyMachine,
  type JoiningTestFleet,
} from '../testing/joining-test-fleet.ts';
import { aPool, someSettings } from '../testing/settings.ts';
import { aTestFleet, REASON, reachPhase, untilAtRest } from '../testing/test-fleet.ts';
import { itTraces, type Trace } from '../testing/trace.ts';

const MINUTE_MS = 60_000;
const EFFECT = 'NoSchedule';

async function aReadyFleet(testFleet = aJoiningTestFleet()): Promise<JoiningTestFleet> {
  await aReadyMachine(testFleet);
  return testFleet;
}

async function minutes(trace: Trace, { clock }: JoiningTestFleet, count: number): Promise<void> {
  for (let minute = 0; minute < count; minute += 1) {
    await trace.passes(1);
    await clock.advance(MINUTE_MS);
  }
}

function onlyNode({ cluster }: JoiningTestFleet) {
  const [node] = cluster.state.nodes.values();
  if (node === undefined) throw new Error('there is no Node');
  return node;
}

itTraces(
  'a Node that differs from its pool',
  () => {
    const taints = ['a', 'b', 'c', 'd'].map(
      (key) => ({ key, value: 'x', effect: EFFECT }) as const,
    );
    const seed = aJoiningSeed({ taints, labels: { tier: 'small', zone: 'here' } });
    return aJoiningTestFleet(someSettings([aJoiningPool({ seed })]));
  },
  async (trace, testFleet) => {
    const { state } = testFleet.cluster;
    testFleet.guests.behaviour = { neverReady: true };
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await trace.passes(20);
    const { name, labels } = onlyNode(testFleet);
    trace.note('labels and taints are changed before the Node is ready');
    const changed = [
      { key: 'a', value: 'x', effect: EFFECT },
      { key: 'b', value: 'y', effect: EFFECT },
      { key: 'c', value: 'x', effect: 'NoExecute' },
    ] as const;
    state.updateNode(name, { labels: { ...labels, tier: 'large' }, taints: changed });
    testFleet.guests.behaviour = {};
    await trace.passes(6);
  },
);

itTraces('a Node that is registered again', aReadyFleet, async (trace, testFleet) => {
  const { name } = onlyNode(testFleet);
  const { state } = testFleet.cluster;
  state.updateNode(name, { uid: 'uid-of-the-second', providerId: 'k3s://x', labels: {} });
  await trace.passes(4);
  trace.note('it is not Ready for some minutes');
  testFleet.guests.settle = () => undefined;
  state.updateNode(name, { ready: false });
  await minutes(trace, testFleet, 8);
});

itTraces('a Node that is deleted', aReadyFleet, async (trace, testFleet) => {
  testFleet.guests.behaviour = { neverRegisters: true };
  testFleet.cluster.state.removeNode(onlyNode(testFleet).name);
  const refusal = new Unreachable('KUBERNETES_UNREACHABLE', 'connection refused');
  testFleet.cluster.failNext('refresh', refusal);
  await minutes(trace, testFleet, 9);
  await trace.passes(6);
});

itTraces('a Node that is deleted together with its VM', aReadyFleet, async (trace, testFleet) => {
  testFleet.hypervisor.state.vms.delete(1_250);
  testFleet.cluster.state.removeNode(onlyNode(testFleet).name);
  await minutes(trace, testFleet, 8);
});

itTraces('a VM that is missing while its Node is Ready', aReadyFleet, async (trace, testFleet) => {
  testFleet.guests.settle = () => undefined;
  testFleet.hypervisor.state.vms.delete(1_250);
  await minutes(trace, testFleet, 8);
  trace.note('Kubernetes cannot be read');
  testFleet.cluster.disconnect();
  await minutes(trace, testFleet, 3);
});

itTraces(
  'Nodes that resemble the one of a machine',
  () => aJoiningTestFleet(),
  async (trace, testFleet) => {
    const { state } = testFleet.cluster;
    testFleet.guests.behaviour = { neverRegisters: true };
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet, 20);
    const [one, other] = (await testFleet.store.machines.list()).map(({ value }) => value);
    const name = one?.placement?.name ?? '';
    trace.note('an older Node with its name, and one with the UUID of the other machine');
    state.putNode(aClusterNode({ name, createdAt: 0 }));
    state.putNode(
      aClusterNode({ name: 'b', systemUuid: other?.id ?? '', createdAt: testFleet.clock.now() }),
    );
    await trace.passes(3);
    trace.note('one with swapped bytes');
    const [first = '', ...rest] = (one?.id ?? '').split('-');
    const swap = (hex: string) => hex.match(/../g)?.toReversed().join('') ?? '';
    const [second = '', third = '', ...others] = rest;
    const systemUuid = [swap(first), swap(second), swap(third), ...others].join('-').toUpperCase();
    state.putNode(aClusterNode({ name: 'c', systemUuid, createdAt: testFleet.clock.now() }));
    await trace.passes(4);
  },
);

for (const zoneOnMigration of ['update', 'report'] as const) {
  itTraces(
    `a VM that is migrated, ${zoneOnMigration}`,
    () => {
      const pool = aJoiningPool();
      const placement = { ...pool.placement, zoneOnMigration };
      return aReadyFleet(aJoiningTestFleet(someSettings([{ ...pool, placement }])));
    },
    async (trace, testFleet) => {
      testFleet.hypervisor.move(1_250, 'pve3');
      await trace.passes(3);
      trace.note('and moved back');
      testFleet.hypervisor.move(1_250, 'pve1');
      await minutes(trace, testFleet, 12);
    },
  );
}

itTraces(
  'a guest that stops while it joins',
  () => aJoiningTestFleet(),
  async (trace, testFleet) => {
    testFleet.guests.behaviour = { neverRegisters: true };
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await trace.passes(20);
    trace.note('it stops');
    testFleet.hypervisor.state.vms.get(1_250)!.startedAt = undefined;
    testFleet.guests.behaviour = {};
    await trace.passes(30);
  },
);

itTraces(
  'Kubernetes that refuses everything',
  () => aJoiningTestFleet(),
  async (trace, testFleet) => {
    const refusal = new Unauthorized('PERMISSION_MISSING', 'forbidden');
    for (const method of [
      'declareNode',
      'changeNode',
      'deleteBootstrapTokens',
      'deleteNode',
    ] as const)
      testFleet.cluster.failNext(method, refusal);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await trace.passes(40);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await trace.passes(20);
  },
);

itTraces(
  'a Node that is refused',
  () => aJoiningTestFleet(),
  async (trace, testFleet) => {
    const refusal = new InvalidRequest('REQUEST_INVALID', 'a label is not valid');
    testFleet.cluster.failNext('declareNode', refusal);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await trace.passes(30);
  },
);

itTraces(
  'a drain that is undone when its Node is gone',
  aDrainTestFleet,
  async (trace, testFleet) => {
    protect(testFleet, testFleet.putPod({ name: 'web-0' }));
    await requestDrain(testFleet);
    await trace.passes(4);
    await testFleet.fleet.cancelDrain([testFleet.id], REASON);
    const gone = new NotFound('NODE_NOT_FOUND', 'not found');
    testFleet.cluster.failNext('changeNode', gone);
    await trace.passes(4);
  },
);

itTraces('a drain while Kubernetes cannot be read', aDrainTestFleet, async (trace, testFleet) => {
  protect(testFleet, testFleet.putPod({ name: 'web-0' }));
  testFleet.cluster.disconnect();
  await requestDrain(testFleet);
  await minutes(trace, testFleet, 3);
  await testFleet.fleet.cancelDrain([testFleet.id], REASON);
  testFleet.cluster.reconnect();
  await minutes(trace, testFleet, 3);
});

itTraces(
  'a drain of a machine that joins nothing',
  () =>
    aTestFleet(
      someSettings([aPool({ joins: false })]),
      (clock) => new MemoryCluster({ clock, random: new SeededRandom(6) }),
    ),
  async (trace, testFleet) => {
    const { id } = await reachPhase(testFleet, 'ready');
    testFleet.cluster?.disconnect();
    await testFleet.clock.advance(MINUTE_MS);
    trace.note('Kubernetes cannot be read');
    await testFleet.fleet.drain({ ...REASON, machines: [{ id }] });
    await trace.passes(6);
  },
);
