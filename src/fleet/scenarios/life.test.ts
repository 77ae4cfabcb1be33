// SPDX-License-Identifier: Apache-2.0
// Machines from their request to their deletion.
import { describe } from 'vitest';
import { aCustomJoin, aKubeadmJoin, anRke2Join } from '../../bootstrap/testing/a-seed.ts';
import type { JoinSettings } from '../context/join-settings.ts';
import type { PoolSettings } from '../context/settings.ts';
import { aJoiningPool, aJoiningSeed, aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import {
  aPool,
  aRegion,
  REGION,
  STATIC_NETWORK,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import { aTestFleet, REASON } from '../testing/test-fleet.ts';
import { itTraces, type Trace, type TracedFleet } from '../testing/trace.ts';

async function createAndDelete(trace: Trace, { fleet }: TracedFleet): Promise<void> {
  trace.note('two machines are requested');
  await fleet.scaleTo('workers', 2, REASON);
  await trace.passes(22);
  await trace.result('status', fleet.status());
  await trace.result('capacity', Promise.resolve(fleet.capacity()));
  trace.note('one of them is removed');
  await fleet.scaleTo('workers', 1, REASON);
  await trace.passes(12);
}

async function createOne(trace: Trace, { fleet }: TracedFleet): Promise<void> {
  await fleet.scaleTo('workers', 1, REASON);
  await trace.passes(18);
}

function poolOf(overrides: Partial<PoolSettings>) {
  return () => aTestFleet(someSettings([aPool(overrides)]));
}

const TWO_FAMILIES: PoolSettings['network'] = {
  ...STATIC_NETWORK,
  v6: {
    kind: 'static',
    ranges: [{ from: 'fd00::11', to: 'fd00::16' }],
    prefix: 64,
    gateway: 'fd00::1',
  },
  dns: ['10.10.10.1'],
  search: ['example.org'],
};

/** A pool whose join is changed a little. */
function joinedBy(change: Partial<JoinSettings>) {
  const seed = aJoiningSeed();
  const join = { ...seed.join, ...change } as JoinSettings;
  return () => aJoiningTestFleet(someSettings([aJoiningPool({ seed: { ...seed, join } })]));
}

describe('machines of each source', () => {
  itTraces('an image', poolOf({ network: STATIC_NETWORK }), createAndDelete);
  itTraces('two families of addresses', poolOf({ network: TWO_FAMILIES }), createOne);
  itTraces('full clones', poolOf({ source: templateSource('full') }), createAndDelete);
  itTraces('linked clones', poolOf({ source: templateSource('linked') }), createAndDelete);
  itTraces('netboot', poolOf({ source: { kind: 'netboot' }, seed: undefined }), createAndDelete);
  itTraces(
    'stopped without a shutdown, in a resource pool',
    () =>
      aTestFleet(
        someSettings([aPool({ deletion: { mode: 'stop', shutdownTimeoutMs: 0 } })], {
          regions: { [REGION]: aRegion({ resourcePool: 'kubernetes' }) },
          clusterName: 'home',
        }),
      ),
    createAndDelete,
  );
});

describe('machines that join', () => {
  itTraces('k3s', () => aJoiningTestFleet(), createAndDelete);
  itTraces('k3s by the guest agent', joinedBy({ via: 'agent' } as never), async (trace, fleets) => {
    fleets.hypervisor.guestCommand = () => ({ exitCode: 0, output: 'running\n', errorOutput: '' });
    await createOne(trace, fleets);
  });
  itTraces(
    'with labels and taints, of a cloud controller',
    () =>
      aJoiningTestFleet(
        someSettings(
          [
            aJoiningPool({
              seed: aJoiningSeed({ taints: [{ key: 'gpu', value: 'a', effect: 'NoSchedule' }] }),
            }),
          ],
          { cloudController: true },
        ),
      ),
    createOne,
  );
  const auto = { kind: 'auto', ttlMs: 3_600_000 } as const;
  const given = { kind: 'static', read: () => Promise.resolve('a-token') } as const;
  itTraces('rke2', joinedBy({ ...anRke2Join({ install: 'none' }), token: auto }), createOne);
  itTraces('kubeadm', joinedBy({ ...aKubeadmJoin({ caCertHashes: [] }), token: auto }), createOne);
  itTraces('kubeadm with known hashes', joinedBy({ ...aKubeadmJoin(), token: auto }), createOne);
  itTraces(
    'a script with a token of its own',
    joinedBy({ ...aCustomJoin(), token: given }),
    createOne,
  );
  itTraces('a script with a token of ours', joinedBy({ ...aCustomJoin(), token: auto }), createOne);
  itTraces(
    'without a provider id',
    () => {
      const testFleet = aJoiningTestFleet();
      testFleet.guests.behaviour = { withoutProviderId: true };
      return testFleet;
    },
    createOne,
  );
});
