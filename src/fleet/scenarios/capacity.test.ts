// SPDX-License-Identifier: Apache-2.0
// What hosts have left, and why a machine has no place.
import {
  aHost,
  aPool,
  aRegion,
  REGION,
  STATIC_NETWORK,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import { aFleet, aTestFleet, REASON, type TestFleet, untilAtRest } from '../testing/test-fleet.ts';
import { itTraces, type Trace } from '../testing/trace.ts';

const GIB = 2 ** 30;
const MINUTE_MS = 60_000;
const pools = [
  aPool({ network: STATIC_NETWORK }),
  aPool({ name: 'clones', source: templateSource('linked') }),
];

/** In the process that drives, and in another one. */
async function capacities(trace: Trace, testFleet: TestFleet, settings = someSettings(pools)) {
  await trace.result('capacity', Promise.resolve(testFleet.fleet.capacity()));
  const other = aFleet({ ...testFleet, settings, seed: 9 });
  await trace.result(
    'read',
    other.readCapacity().then(({ capacity }) => capacity),
  );
  await trace.result('report', Promise.resolve(testFleet.fleet.forecast.report()));
}

function putVm(
  { hypervisor, clock }: TestFleet,
  vmId: number,
  options: Record<string, string>,
): void {
  const all = { memory: '4096', cores: '4', scsi0: `local-lvm:vm-${vmId},size=30G`, ...options };
  hypervisor.state.vms.set(vmId, {
    vmId,
    host: vmId % 2 === 0 ? 'pve1' : 'pve2',
    options: new Map(Object.entries(all)),
    revision: 1,
    startedAt: vmId % 3 === 0 ? undefined : clock.monotonic(),
  });
}

itTraces(
  'capacity with VMs of others',
  () => aTestFleet(someSettings(pools)),
  async (trace, testFleet) => {
    for (const vmId of [101, 102, 103, 104, 105]) putVm(testFleet, vmId, {});
    putVm(testFleet, 1_251, { ipconfig0: 'ip=10.10.10.11/24' });
    await trace.passes(2);
    await capacities(trace, testFleet);
    await testFleet.fleet.request('workers', 2, REASON);
    await testFleet.fleet.request('clones', 2, REASON);
    await trace.passes(2);
    trace.note('while machines are created');
    await capacities(trace, testFleet);
    await untilAtRest(testFleet.fleet, testFleet, 30);
    trace.note('a host is down');
    testFleet.hypervisor.setOnline('pve2', false);
    await trace.passes(2);
    await capacities(trace, testFleet);
  },
);

itTraces(
  'hosts that refuse a machine for several reasons',
  () => {
    const placement = { ...aPool().placement, hosts: { allow: [], deny: ['pve6'] } } as never;
    return aTestFleet(someSettings([aPool({ placement })], { unplacedTimeoutMs: 5 * MINUTE_MS }));
  },
  async (trace, testFleet) => {
    const { hosts } = testFleet.hypervisor.state;
    hosts[0] = aHost('pve1', { memoryBytes: GIB });
    hosts[1] = aHost('pve2', { cpus: 1 });
    hosts[2] = aHost('pve3', {
      storages: aHost('pve3').storages.map((one) => ({ ...one, freeBytes: 0 })),
    });
    hosts.push(aHost('pve4', { online: false }), aHost('pve5', { storages: [] }), aHost('pve6'));
    const size = { cpu: 20, memoryBytes: 60 * GIB, diskBytes: 50 * GIB };
    await testFleet.fleet.request('workers', 1, { ...REASON, size });
    await trace.passes(2);
    await trace.result('status', testFleet.fleet.status());
    await testFleet.fleet.request('workers', 1, {
      ...REASON,
      size,
      host: { region: REGION, host: 'pve3' },
    });
    await testFleet.fleet.request('workers', 1, {
      ...REASON,
      size,
      host: { region: 'elsewhere', host: 'pve3' },
    });
    await trace.passes(2);
    await trace.result('status', testFleet.fleet.status());
    trace.note('the timeout of unplaced machines passes');
    await testFleet.clock.advance(6 * MINUTE_MS);
    await trace.passes(3);
  },
);

itTraces(
  'few VM ids',
  () =>
    aTestFleet(
      someSettings(undefined, {
        regions: { [REGION]: aRegion({ vmIds: { from: 1_250, to: 1_251 } }) },
      }),
    ),
  async (trace, testFleet) => {
    putVm(testFleet, 1_250, {});
    await testFleet.fleet.request('workers', 2, REASON);
    await trace.passes(14);
    await trace.result('status', testFleet.fleet.status());
    trace.note('the id of a deleted machine rests');
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await trace.passes(8);
    const machines = (await testFleet.store.machines.list()).map(({ value }) => value);
    await testFleet.fleet.remove(
      machines.filter(({ phase }) => phase === 'ready').map(({ id }) => id),
      REASON,
    );
    await trace.passes(12);
    await testFleet.fleet.request('workers', 1, REASON);
    await trace.passes(2);
    await testFleet.clock.advance(60 * MINUTE_MS);
    await trace.passes(3);
  },
);

for (const [what, source] of Object.entries({
  'that does not exist': { ...templateSource(), name: 'absent' },
  'with an id': { ...templateSource(), id: 9_002, name: undefined },
  'with an id for each host': {
    ...templateSource('linked'),
    name: undefined,
    idByHost: { pve3: 9_003 },
  },
})) {
  itTraces(
    `a template ${what}`,
    () => aTestFleet(someSettings([aPool({ source })])),
    async (trace, testFleet) => {
      await testFleet.fleet.request('workers', 2, REASON);
      await trace.passes(12);
      await trace.result('status', testFleet.fleet.status());
    },
  );
}

itTraces(
  'two sizes in one pool',
  () => {
    const [small, large] = [2, 4].map((cpu) => ({
      cpu,
      memoryBytes: cpu * GIB,
      diskBytes: 20 * GIB,
    }));
    const nodeGroups = [
      { id: 'workers-small', instanceType: 'small', size: small! },
      { id: 'workers-large', instanceType: 'large', size: large! },
    ];
    return aTestFleet(someSettings([aPool({ size: small!, nodeGroups })]));
  },
  async (trace, { fleet }) => {
    await trace.result(
      'small',
      fleet.scaleTo('workers', 2, { ...REASON, nodeGroup: 'workers-small' }),
    );
    await trace.result(
      'large',
      fleet.scaleTo('workers', 1, { ...REASON, nodeGroup: 'workers-large' }),
    );
    await trace.result(
      'huge',
      fleet.scaleTo('workers', 1, { ...REASON, nodeGroup: 'workers-huge' }),
    );
    await trace.passes(2);
    await trace.result('status', fleet.status());
    await trace.result(
      'cancel',
      fleet.cancel('workers', 1, { ...REASON, nodeGroup: 'workers-large' }),
    );
    await trace.result(
      'less',
      fleet.scaleTo('workers', 1, { ...REASON, nodeGroup: 'workers-small' }),
    );
    await trace.passes(4);
  },
);
