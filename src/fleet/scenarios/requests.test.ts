// SPDX-License-Identifier: Apache-2.0
// Requests of front ends, and where machines are placed.
import {
  aHost,
  aPool,
  aRegion,
  REGION,
  STATIC_NETWORK,
  someSettings,
} from '../testing/settings.ts';
import { aTestFleet, machinesIn, REASON, untilAtRest } from '../testing/test-fleet.ts';
import { itTraces } from '../testing/trace.ts';

const GIB = 2 ** 30;
const LARGE = { cpu: 8, memoryBytes: 24 * GIB, diskBytes: 40 * GIB };

itTraces(
  'requests',
  () => aTestFleet(),
  async (trace, { fleet, store }) => {
    trace.note('refused requests');
    await trace.result('too many', fleet.request('workers', 11, REASON));
    await trace.result('unknown pool', fleet.request('others', 1, REASON));
    await trace.result('negative', fleet.request('workers', -1, REASON));
    await trace.result('nothing', fleet.request('workers', 0, REASON));
    await trace.result(
      'unknown host',
      fleet.request('workers', 1, { ...REASON, host: { region: REGION, host: 'pve9' } }),
    );
    trace.note('accepted requests');
    await trace.result(
      'host',
      fleet.request('workers', 1, { ...REASON, host: { region: REGION, host: 'pve2' } }),
    );
    await trace.result('size', fleet.request('workers', 1, { ...REASON, size: LARGE }));
    await trace.passes(1);
    await trace.result('cancel', fleet.cancel('workers', 5, REASON));
    await trace.passes(20);
    const machines = await machinesIn(store);
    const ready = machines.filter(({ phase }) => phase === 'ready').map(({ id }) => id);
    await trace.result(
      'cancel',
      fleet.cancelMachines(
        machines.map(({ id }) => id),
        REASON,
      ),
    );
    await trace.result('drain', fleet.drain({ ...REASON, machines: ready.map((id) => ({ id })) }));
    await trace.result('cancel drain', fleet.cancelDrain(ready, REASON));
    await trace.passes(3);
    await trace.result(
      'remove',
      fleet.remove(
        machines.map(({ id }) => id),
        REASON,
      ),
    );
    await trace.passes(10);
    await trace.result(
      'remove again',
      fleet.remove(
        machines.map(({ id }) => id),
        REASON,
      ),
    );
    await trace.result('resume', fleet.resume('workers', REASON));
    await trace.passes(2);
  },
);

itTraces(
  'limits of a pool',
  () =>
    aTestFleet(someSettings([aPool({ limits: { ...aPool().limits, min: 2, max: 4, cpu: 10 } })])),
  async (trace, { fleet }) => {
    await trace.passes(16);
    await trace.result('below the minimum', fleet.scaleTo('workers', 1, REASON));
    await trace.result('above the maximum', fleet.scaleTo('workers', 5, REASON));
    await trace.result('above the cpus', fleet.request('workers', 1, { ...REASON, size: LARGE }));
    await trace.result('allowed', fleet.scaleTo('workers', 4, REASON));
    await trace.passes(3);
    await trace.result('status', fleet.status());
    await trace.result('capacity', Promise.resolve(fleet.capacity()));
    await trace.result(
      'read capacity',
      fleet.readCapacity().then(({ capacity }) => capacity),
    );
  },
);

for (const strategy of ['spread', 'pack'] as const) {
  itTraces(
    `placement, ${strategy}`,
    () => {
      const pool = aPool({
        placement: { ...aPool().placement, strategy },
        network: STATIC_NETWORK,
      });
      const region = aRegion({ limits: { createsPerHost: 1 } });
      return aTestFleet(someSettings([pool], { regions: { [REGION]: region } }));
    },
    async (trace, testFleet) => {
      const { hosts } = testFleet.hypervisor.state;
      hosts[1] = aHost('pve2', { memoryBytes: 16 * GIB });
      hosts[2] = aHost('pve3', {
        storages: aHost('pve3').storages.filter(({ name }) => name !== 'local-lvm'),
      });
      await testFleet.fleet.request('workers', 3, { ...REASON, size: LARGE });
      await trace.passes(3);
      await testFleet.fleet.request('workers', 4, REASON);
      await untilAtRest(testFleet.fleet, testFleet, 30);
      await trace.result('status', testFleet.fleet.status());
      await trace.result('capacity', Promise.resolve(testFleet.fleet.capacity()));
    },
  );
}

itTraces(
  'a minimum above the limits',
  () => aTestFleet(someSettings([aPool({ limits: { ...aPool().limits, min: 3, cpu: 4 } })])),
  async (trace, { fleet }) => {
    await trace.passes(3);
    await trace.result('status', fleet.status());
  },
);
