// SPDX-License-Identifier: Apache-2.0
// The crash matrix of machines that join: after each durable write, and at each call to Proxmox or Kubernetes that
// leaves something behind. The next process must end with exactly what was wanted on both sides.
import { describe, expect, it } from 'vitest';
import { STARTUP_TAINT } from '../../bootstrap/index.ts';
import { vmProviderId } from '../../model/provider-id.ts';
import { MemoryStore, SimulatedCrash } from '../../ports/fakes/memory-store.ts';
import { CrashingProcess, type CrashPoint } from '../testing/crashing-process.ts';
import {
  aJoiningTestFleet,
  type JoiningTestFleet,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import { REGION } from '../testing/settings.ts';
import { aFleet, leftovers, machinesIn, untilAtRest, WHY } from '../testing/test-fleet.ts';

interface Scenario {
  readonly name: string;
  readonly before: number;
  readonly wanted: number;
}

const SCENARIOS: readonly Scenario[] = [
  { name: 'create', before: 0, wanted: 2 },
  { name: 'delete', before: 2, wanted: 1 },
];

async function prepared({ before, wanted }: Scenario): Promise<JoiningTestFleet> {
  const bench = aJoiningTestFleet();
  bench.guests.behaviour = { withoutProviderId: true };
  if (before > 0) {
    await bench.fleet.scaleTo('workers', before, WHY);
    await untilAtRest(bench.fleet, bench);
  }
  await bench.fleet.scaleTo('workers', wanted, WHY);
  return bench;
}

async function lived(bench: JoiningTestFleet, wish: CrashPoint): Promise<CrashingProcess> {
  const mortal = new CrashingProcess(bench.store, bench.hypervisor, wish);
  const { store, hypervisor } = mortal;
  const cluster = mortal.wrap(bench.cluster);
  const settings = joiningSettings();
  const fleet = aFleet({ ...bench, store, hypervisor, cluster, settings, seed: 2 });
  await untilAtRest(fleet, { ...bench, store }).catch((error: unknown) => {
    if (!(error instanceof SimulatedCrash)) throw error;
  });
  return mortal;
}

async function expectExactly(bench: JoiningTestFleet, wanted: number): Promise<void> {
  const left = leftovers(bench.hypervisor);
  const alive = (await machinesIn(bench.store)).filter(({ phase }) => phase === 'ready');
  expect(left.vms).toHaveLength(wanted);
  expect(left.machines.toSorted()).toEqual(alive.map(({ id }) => id).sort());
  expect(left.isos).toEqual([]);
  const nodes = [...bench.cluster.state.nodes.values()];
  expect(nodes.map(({ systemUuid }) => systemUuid).sort()).toEqual(left.machines.toSorted());
  for (const { id, placement, nodeName, nodeUid, providerId } of alive) {
    const node = nodes.find(({ systemUuid }) => systemUuid === id);
    expect(node).toMatchObject({
      name: nodeName,
      uid: nodeUid,
      providerId,
      ready: true,
      labels: { 'node-role.kubernetes.io/worker': '' },
    });
    expect(providerId).toBe(vmProviderId(REGION, placement?.vmId ?? 0));
    expect(node?.taints.map(({ key }) => key)).not.toContain(STARTUP_TAINT.key);
  }
  await expectNoSecretKept(bench);
}

async function expectNoSecretKept({ store, cluster }: JoiningTestFleet): Promise<void> {
  const kept = JSON.stringify([await machinesIn(store), await store.journal.read()]);
  for (const { token } of cluster.state.tokens) expect(kept).not.toContain(token.split('.')[1]);
}

async function afterwards(bench: JoiningTestFleet, wanted: number): Promise<void> {
  const fleet = aFleet({ ...bench, settings: joiningSettings(), seed: 3 });
  await untilAtRest(fleet, bench);
  await expectExactly(bench, wanted);
}

async function withoutDatabase(bench: JoiningTestFleet, wanted: number): Promise<void> {
  const fresh = { ...bench, store: new MemoryStore({ clock: bench.clock }) };
  const fleet = aFleet({ ...fresh, settings: joiningSettings(), seed: 4 });
  await untilAtRest(fleet, fresh);
  await fleet.scaleTo('workers', wanted, WHY);
  await untilAtRest(fleet, fresh);
  // What lost its machine together with the records is a ghost, and takes its time.
  for (let round = 0; round < 8; round += 1) {
    await bench.clock.advance(60_000);
    await untilAtRest(fleet, fresh);
  }
  await expectExactly(fresh, wanted);
}

describe.each(SCENARIOS)('a crash while machines join, $name', (scenario) => {
  it('at every instant leaves a state to go on from', async () => {
    const calm = await lived(await prepared(scenario), { kind: 'never' });
    expect(calm.calls).toContain(
      scenario.name === 'create' ? 'createBootstrapToken' : 'deleteNode',
    );
    const wishes: CrashPoint[] = [
      ...Array.from(
        { length: calm.writes },
        (_, at) => ({ kind: 'write', number: at + 1 }) as const,
      ),
      ...calm.calls.flatMap((_, at) => [
        { kind: 'unseen', number: at + 1 } as const,
        { kind: 'seen', number: at + 1 } as const,
      ]),
    ];
    for (const wish of wishes) {
      for (const judge of [afterwards, withoutDatabase]) {
        const bench = await prepared(scenario);
        await lived(bench, wish);
        await judge(bench, scenario.wanted).catch((cause: unknown) => {
          throw new Error(`after ${JSON.stringify(wish)}, ${judge.name}`, { cause });
        });
      }
    }
  });
});
