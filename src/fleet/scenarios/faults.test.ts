// SPDX-License-Identifier: Apache-2.0
// Errors of Proxmox and Kubernetes, and changes by other users.
import { Conflict, NoCapacity, TaskFailed, Unauthorized, Unreachable } from '../../ports/errors.ts';
import type { HypervisorMethod } from '../../ports/fakes/memory-hypervisor.ts';
import {
  aJoiningMachine,
  aJoiningTestFleet,
  aReadyMachine,
  type JoiningTestFleet,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import { aPool, STATIC_NETWORK, someSettings, templateSource } from '../testing/settings.ts';
import { aTestFleet, REASON, reachPhase, replaceVm, untilAtRest } from '../testing/test-fleet.ts';
import { itTraces } from '../testing/trace.ts';

const MINUTE_MS = 60_000;
const UNREACHABLE = new Unreachable('PVE_UNREACHABLE', 'connection refused');
const aStaticFleet = () => aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));

async function aReadyFleet(): Promise<JoiningTestFleet> {
  const testFleet = aJoiningTestFleet();
  await aReadyMachine(testFleet);
  return testFleet;
}

const CALLS: readonly HypervisorMethod[] = [
  'downloadImage',
  'createVm',
  'uploadIso',
  'attachSeed',
  'startVm',
  'guestIsUp',
  'setDescription',
  'ejectSeed',
  'deleteVolume',
];

itTraces('each call of a creation fails once', aStaticFleet, async (trace, testFleet) => {
  for (const method of CALLS) testFleet.hypervisor.failNext(method, UNREACHABLE);
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  await trace.passes(40);
});

itTraces('each response of a creation is lost', aStaticFleet, async (trace, testFleet) => {
  for (const method of CALLS) testFleet.hypervisor.dropResponse(method);
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  await trace.passes(40);
});

itTraces(
  'each response of a clone is lost',
  () => aTestFleet(someSettings([aPool({ source: templateSource() })])),
  async (trace, testFleet) => {
    for (const method of ['cloneVm', 'applySpec', 'growBootDisk', 'startVm'] as const)
      testFleet.hypervisor.dropResponse(method);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await trace.passes(40);
  },
);

itTraces('tasks of a creation fail', aStaticFleet, async (trace, testFleet) => {
  const failure = new TaskFailed('TASK_FAILED', 'no space left on device');
  for (let n = 0; n < 3; n += 1) testFleet.hypervisor.failNextTask('create', failure);
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  await trace.passes(30);
  await trace.result('status', testFleet.fleet.status());
  trace.note('the back-off of the pool is over');
  await testFleet.clock.advance(2 * MINUTE_MS);
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  await trace.passes(14);
});

itTraces('a creation is refused', aStaticFleet, async (trace, testFleet) => {
  const refusal = new Unauthorized('PERMISSION_MISSING', 'permission denied');
  testFleet.hypervisor.failNext('createVm', refusal);
  await testFleet.fleet.scaleTo('workers', 2, REASON);
  await trace.passes(12);
});

itTraces('a VM id is taken', aStaticFleet, async (trace, testFleet) => {
  testFleet.hypervisor.onCall = ({ method }) => {
    testFleet.hypervisor.onCall = method === 'createVm' ? undefined : testFleet.hypervisor.onCall;
    if (method === 'createVm') replaceVm(testFleet, { vmId: 1_250, host: 'pve1' });
  };
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  await trace.passes(16);
});

itTraces('each call of a deletion fails once', aReadyFleet, async (trace, testFleet) => {
  const { hypervisor, cluster, fleet } = testFleet;
  for (const method of ['setDescription', 'vmState', 'shutdownVm', 'destroyVm'] as const)
    hypervisor.failNext(method, UNREACHABLE);
  hypervisor.failNextTask('destroy', new TaskFailed('TASK_FAILED', 'VM is locked (backup)'));
  hypervisor.failNextTask('shutdown', new TaskFailed('TASK_FAILED', 'the guest does not react'));
  cluster.failNext('deleteNode', new Conflict('NODE_CHANGED', 'the Node was changed'));
  await fleet.scaleTo('workers', 0, REASON);
  await trace.passes(40);
});

itTraces(
  'a machine never registers',
  () => aJoiningTestFleet(),
  async (trace, testFleet) => {
    await aJoiningMachine(testFleet);
    trace.note('the provision timeout passes');
    await testFleet.clock.advance(30 * MINUTE_MS);
    await trace.passes(12);
  },
);

itTraces(
  'a Node never becomes ready',
  () => aJoiningTestFleet(),
  async (trace, testFleet) => {
    testFleet.guests.behaviour = { neverReady: true };
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await trace.passes(20);
    trace.note('the provision timeout passes');
    await testFleet.clock.advance(30 * MINUTE_MS);
    await trace.passes(12);
  },
);

itTraces('a VM is deleted by a person', aReadyFleet, async (trace, testFleet) => {
  testFleet.hypervisor.state.vms.delete(1_250);
  await trace.passes(3);
  await trace.result('status', testFleet.fleet.status());
  for (let minute = 0; minute < 6; minute += 1) {
    await testFleet.clock.advance(MINUTE_MS);
    await trace.passes(1);
  }
  await trace.passes(3);
});

itTraces('a VM is migrated', aReadyFleet, async (trace, testFleet) => {
  testFleet.hypervisor.move(1_250, 'pve3');
  await trace.passes(4);
  await trace.result('status', testFleet.fleet.status());
});

itTraces('a VM gets the id of a machine', aReadyFleet, async (trace, testFleet) => {
  replaceVm(testFleet, { vmId: 1_250, host: 'pve1' });
  await trace.passes(3);
  await testFleet.fleet.scaleTo('workers', 0, REASON);
  await trace.passes(5);
});

for (const onStopped of ['restart', 'replace', 'ignore'] as const) {
  itTraces(
    `a stopped VM, ${onStopped}`,
    () => aTestFleet(someSettings([aPool({ onStopped })])),
    async (trace, testFleet) => {
      await reachPhase(testFleet, 'ready');
      await untilAtRest(testFleet.fleet, testFleet);
      trace.note('the VM is stopped');
      testFleet.hypervisor.state.vms.get(1_250)!.startedAt = undefined;
      await trace.passes(12);
    },
  );
}

itTraces('a host goes down', aReadyFleet, async (trace, testFleet) => {
  testFleet.hypervisor.setOnline('pve1', false);
  await testFleet.fleet.scaleTo('workers', 3, REASON);
  await trace.passes(3);
  await trace.result('status', testFleet.fleet.status());
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  await trace.passes(5);
  trace.note('it is up again');
  testFleet.hypervisor.setOnline('pve1', true);
  await trace.passes(12);
});

itTraces('a region cannot be read', aReadyFleet, async (trace, testFleet) => {
  for (let n = 0; n < 3; n += 1) testFleet.hypervisor.failNext('view', UNREACHABLE);
  testFleet.hypervisor.failNext('view', new Unauthorized('CREDENTIALS_REFUSED', 'expired'));
  await testFleet.fleet.scaleTo('workers', 2, REASON);
  await trace.passes(6);
  await trace.result('status', testFleet.fleet.status());
  trace.note('it cannot be read again');
  testFleet.hypervisor.failNext('view', UNREACHABLE);
  await trace.passes(14);
});

itTraces('Kubernetes cannot be read', aReadyFleet, async (trace, testFleet) => {
  testFleet.cluster.disconnect();
  await testFleet.fleet.scaleTo('workers', 2, REASON);
  await trace.passes(20);
  await testFleet.clock.advance(MINUTE_MS);
  await trace.passes(1);
  trace.note('it can be read again');
  testFleet.cluster.reconnect();
  await trace.passes(6);
});

itTraces('no host has room', aStaticFleet, async (trace, testFleet) => {
  const size = { cpu: 2, memoryBytes: 2 ** 50, diskBytes: 2 ** 34 };
  await trace.result('request', testFleet.fleet.request('workers', 1, { ...REASON, size }));
  await trace.passes(3);
  await trace.result('status', testFleet.fleet.status());
  const refusal = new NoCapacity('NO_STORAGE_SPACE', 'nothing is left');
  testFleet.hypervisor.failNext('createVm', refusal);
  await testFleet.fleet.cancel('workers', 1, REASON);
  await testFleet.fleet.request('workers', 7, REASON);
  await trace.passes(4);
  await trace.result('status', testFleet.fleet.status());
});

itTraces(
  'most Nodes disappear',
  async () => {
    const testFleet = aJoiningTestFleet(joiningSettings());
    await testFleet.fleet.scaleTo('workers', 6, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    return testFleet;
  },
  async (trace, testFleet) => {
    testFleet.guests.behaviour = { neverRegisters: true };
    for (const name of [...testFleet.cluster.state.nodes.keys()].slice(0, 5))
      testFleet.cluster.state.removeNode(name);
    await trace.passes(2);
    await testFleet.clock.advance(6 * MINUTE_MS);
    await trace.passes(3);
    await trace.result('status', testFleet.fleet.status());
    trace.note('the last Node disappears too');
    const [name = ''] = testFleet.cluster.state.nodes.keys();
    testFleet.cluster.state.removeNode(name);
    await trace.passes(3);
    trace.note('a person confirms it');
    const lost = (await testFleet.fleet.status()).pools[0]?.lost?.machines ?? [];
    await testFleet.fleet.remove(lost, REASON);
    await trace.passes(25);
  },
);
