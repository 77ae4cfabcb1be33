// SPDX-License-Identifier: Apache-2.0
// What `kubectl get` shows of a new object: its status, which a creation cannot set.
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Machine } from '../../src/model/machine.ts';
import { aMachine, aMachineId } from '../../src/ports/fakes/sample-records.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { FaultKind } from '../../src/sim/kubernetes/index.ts';
import { StoreBench } from './store-bench.ts';

const ID = aMachineId();
const API = 'pvescaler.dev/v1alpha1';

describe('the status of a new object', () => {
  async function create(phase: Machine['phase'], fault?: FaultKind) {
    const bench = new StoreBench(new VirtualClock());
    onTestFinished(() => bench.cleanup());
    const { sim } = bench;
    const store = await bench.open();
    if (fault !== undefined) sim.faults.add({ verb: 'PUT', fault });
    const created = await store.machines.create(ID, aMachine({ phase }));
    const count = sim.requests.filter((line) => /^(POST|PUT) .*proxmox/.test(line)).length;
    const [object] = sim.list(API, 'proxmoxmachines');
    const status = object?.['status'];
    await store.machines.replace(created, aMachine({ phase: 'deleting' }));
    return { count, status };
  }

  it('is written at once for a machine that is not at its beginning: kubectl shows only the status', async () => {
    for (const phase of ['ready', 'failed'] as const)
      expect(await create(phase)).toMatchObject({ count: 2, status: { phase } });
  });

  it('costs no write of its own for a machine that is', async () => {
    expect(await create('requested')).toEqual({ count: 1, status: undefined });
  });

  it('is written with the next write when its write fails', async () => {
    const refused = await create('ready', { kind: 'status', status: 500 });
    expect(refused).toEqual({ count: 2, status: undefined });
    expect(await create('ready', { kind: 'disconnect-after' })).toMatchObject({ count: 2 });
  });
});
