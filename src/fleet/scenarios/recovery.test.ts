// SPDX-License-Identifier: Apache-2.0
// VMs, seeds, Nodes and records that have lost their counterpart.
import { formatMarker, type Marker } from '../../model/marker.ts';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import {
  aJoiningTestFleet,
  aReadyMachine,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import { aPool, CLUSTER, REGION, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  REASON,
  reachPhase,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';
import { itTraces } from '../testing/trace.ts';

const MINUTE_MS = 60_000;
const settings = (orphans: 'report' | 'delete' = 'report') =>
  someSettings([aPool({ network: STATIC_NETWORK })], { orphans });
const aStaticFleet = () => aTestFleet(settings());

/** A VM of another user on pve1, which is stopped. */
function putVm(
  { hypervisor }: TestFleet,
  vmId: number,
  options: Readonly<Record<string, string>>,
): void {
  const all = { name: 'theirs', cores: '2', scsi0: `local-lvm:vm-${vmId},size=3G`, ...options };
  hypervisor.state.vms.set(vmId, {
    vmId,
    host: 'pve1',
    options: new Map(Object.entries(all)),
    revision: 1,
    startedAt: undefined,
  });
}

function putRunningVm(...given: Parameters<typeof putVm>): void {
  const [{ hypervisor, clock }, vmId] = given;
  putVm(...given);
  hypervisor.state.vms.get(vmId)!.startedAt = clock.monotonic();
}

function marker(vmId: number, machine: number, overrides: Partial<Marker> = {}) {
  const ids = { machine: aMachineId(machine), vmId, cluster: CLUSTER, pool: 'workers' };
  const description = formatMarker({ ...ids, createdAtSeconds: 1, addresses: [], ...overrides });
  return { description, smbios1: `uuid=${aMachineId(machine)}` };
}

async function withEmptyStore(testFleet: TestFleet): Promise<TestFleet> {
  const store = new MemoryStore({ clock: testFleet.clock });
  return {
    ...testFleet,
    store,
    fleet: aFleet({ ...testFleet, store, settings: settings(), seed: 2 }),
  };
}

itTraces(
  'the database is lost',
  async () => {
    const testFleet = aStaticFleet();
    await testFleet.fleet.scaleTo('workers', 3, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await runPasses(testFleet, 2);
    await testFleet.fleet.scaleTo('workers', 3, REASON);
    await runPasses(testFleet, 4);
    return withEmptyStore(testFleet);
  },
  async (trace, testFleet) => {
    await trace.result('orphans', testFleet.fleet.orphans());
    await trace.passes(16);
    await trace.result('orphans', testFleet.fleet.orphans());
  },
);

itTraces('VMs with markers', aStaticFleet, async (trace, testFleet) => {
  putRunningVm(testFleet, 1_260, marker(1_260, 3, { region: REGION, readySinceSeconds: 2 }));
  putVm(testFleet, 1_261, marker(1_261, 4, { addresses: ['10.10.10.11/24'] }));
  putVm(testFleet, 1_262, marker(1_262, 4));
  testFleet.hypervisor.move(1_262, 'pve2');
  putVm(testFleet, 1_263, marker(1_264, 5));
  putVm(testFleet, 1_265, marker(1_265, 6, { cluster: aMachineId(99) }));
  putVm(testFleet, 1_266, { ...marker(1_266, 7), smbios1: `uuid=${aMachineId(8)}` });
  putRunningVm(testFleet, 1_267, marker(1_267, 9, { pool: 'unknown' }));
  putRunningVm(testFleet, 1_268, marker(1_268, 10, { deletingSinceSeconds: 5 }));
  putVm(testFleet, 1_269, { ...marker(1_269, 11), lock: 'create' });
  putRunningVm(testFleet, 1_270, marker(1_270, 12, { region: 'elsewhere' }));
  putVm(testFleet, 1_271, { description: 'pvescaler/v1 broken', tags: 'pvescaler' });
  await trace.result('orphans', testFleet.fleet.orphans());
  await trace.passes(12);
  await trace.result('orphans', testFleet.fleet.orphans());
  await trace.result('status', testFleet.fleet.status());
});

for (const orphans of ['report', 'delete'] as const) {
  itTraces(
    `orphaned seeds, ${orphans}`,
    () => aTestFleet(settings(orphans)),
    async (trace, testFleet) => {
      const { volumes } = testFleet.hypervisor.state;
      const names = [CLUSTER, aMachineId(99)].map((of) => `pvescaler_${of}_${aMachineId(3)}.iso`);
      for (const name of [...names, 'debian.iso']) {
        const id = `seeds:iso/${name}`;
        volumes.set(id, { id, content: 'iso', bytes: 1, host: 'pve1' } as never);
      }
      await trace.result('orphans', testFleet.fleet.orphans());
      for (let minute = 0; minute < 20; minute += 1) {
        await trace.passes(1);
        await testFleet.clock.advance(5 * MINUTE_MS);
      }
    },
  );
}

itTraces(
  'orphaned Nodes',
  () => aJoiningTestFleet(),
  async (trace, testFleet) => {
    const { id } = await aReadyMachine(testFleet);
    const { state } = testFleet.cluster;
    trace.note('Nodes without a machine appear');
    const groupLabel = { 'autoscaler.proxmox/group': 'workers' };
    const providerId = 'proxmox://memory/1299';
    state.putNode(
      aClusterNode({ name: 'a', systemUuid: aMachineId(3), labels: groupLabel, providerId }),
    );
    state.putNode(
      aClusterNode({
        name: 'b',
        systemUuid: aMachineId(4),
        ready: false,
        labels: groupLabel,
        providerId,
      }),
    );
    state.putNode(aClusterNode({ name: 'c', systemUuid: id, ready: false, labels: groupLabel }));
    state.putNode(aClusterNode({ name: 'd', ready: false }));
    for (let minute = 0; minute < 12; minute += 1) {
      await trace.passes(1);
      await testFleet.clock.advance(MINUTE_MS);
    }
    await trace.result('orphans', testFleet.fleet.orphans());
  },
);

itTraces('an older database', aStaticFleet, async (trace, testFleet) => {
  await reachPhase(testFleet, 'creating');
  const store = testFleet.store.copy();
  await untilAtRest(testFleet.fleet, testFleet);
  trace.note('the database is restored');
  const fleet = aFleet({ ...testFleet, store, settings: settings(), seed: 7 });
  await runPasses({ ...testFleet, store, fleet }, 6);
  await trace.result('machines', store.machines.list());
  await trace.result('journal', store.journal.read());
});

itTraces('decisions about VMs', aStaticFleet, async (trace, testFleet) => {
  const { fleet, hypervisor } = testFleet;
  const decide = async (request: Parameters<typeof fleet.planVmDecision>[0]) => {
    const { kind, vmId } = request;
    trace.note(`${kind} ${vmId}`);
    const planned = fleet.planVmDecision(request);
    await trace.result('plan', planned);
    const decision = await planned.catch(() => undefined);
    if (decision !== undefined) await fleet.requestVmDecision(decision);
    await trace.passes(2);
  };
  const machine = await reachPhase(testFleet, 'ready');
  await untilAtRest(testFleet.fleet, testFleet);
  const { options } = hypervisor.state.vms.get(1_250)!;
  const description = options.get('description') ?? '';
  options.set('description', 'my own notes');
  await decide({ kind: 'forget', vmId: 1_250 });
  await decide({ kind: 'adopt', vmId: 1_250, pool: 'others' });
  await decide({ kind: 'adopt', vmId: 1_250 });
  await decide({ kind: 'adopt', vmId: 1_250 });
  const uuid = { smbios1: `uuid=${aMachineId(3)}` };
  const config = {
    ...uuid,
    description: 'a VM of mine',
    ipconfig0: 'ip=10.10.10.14/24',
    tags: 'mine',
  };
  putRunningVm(testFleet, 1_280, config);
  await decide({ kind: 'adopt', vmId: 1_280 });
  await decide({ kind: 'adopt', vmId: 1_280, pool: 'others' });
  await decide({ kind: 'adopt', vmId: 1_280, pool: 'workers', region: 'elsewhere' });
  await decide({ kind: 'adopt', vmId: 1_280, pool: 'workers' });
  const taken = { smbios1: `uuid=${aMachineId(4)}`, ipconfig0: 'ip=10.10.10.11/24' };
  putVm(testFleet, 1_281, taken);
  await decide({ kind: 'adopt', vmId: 1_281, pool: 'workers' });
  putVm(testFleet, 1_282, { description, tags: 'pvescaler;mine', smbios1: `uuid=${machine.id}` });
  await decide({ kind: 'adopt', vmId: 1_282 });
  await decide({ kind: 'forget', vmId: 1_282 });
  await decide({ kind: 'forget', vmId: 1_282 });
  putVm(testFleet, 1_283, { lock: 'create' });
  await decide({ kind: 'forget', vmId: 1_283 });
  putVm(testFleet, 1_284, marker(1_284, 5, { cluster: aMachineId(99) }));
  await decide({ kind: 'adopt', vmId: 1_284 });
  putVm(testFleet, 1_285, {});
  await decide({ kind: 'adopt', vmId: 1_285, pool: 'workers' });
  await decide({ kind: 'forget', vmId: 9_001 });
  await decide({ kind: 'forget', vmId: 1_298 });
});

itTraces(
  'a removed pool',
  () => aJoiningTestFleet(),
  async (trace, testFleet) => {
    await aReadyMachine(testFleet);
    trace.note('the pool is not in the config any more');
    const fleet = aFleet({ ...testFleet, settings: joiningSettings({ pools: {} }), seed: 3 });
    await runPasses({ ...testFleet, fleet }, 4);
    await trace.result('status', fleet.status());
    await fleet.remove(
      (await testFleet.store.machines.list()).map(({ value }) => value.id),
      REASON,
    );
    await runPasses({ ...testFleet, fleet }, 10);
  },
);

itTraces(
  'times of a fast clock',
  () => aJoiningTestFleet(),
  async (trace, testFleet) => {
    testFleet.clock.setWallClock(testFleet.clock.now() + 10 * 60 * MINUTE_MS);
    await aReadyMachine(testFleet);
    trace.note('the clock is set back');
    testFleet.clock.setWallClock(testFleet.clock.now() - 10 * 60 * MINUTE_MS);
    const fleet = aFleet({ ...testFleet, settings: joiningSettings(), seed: 3 });
    await fleet.scaleTo('workers', 2, REASON);
    await runPasses({ ...testFleet, fleet }, 25);
    await trace.result('status', fleet.status());
  },
);
