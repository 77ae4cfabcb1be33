// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { InvalidConfig } from '../../ports/errors.ts';
import type { SourceSettings } from '../context/settings.ts';
import { aJoiningTestFleet, aReadyMachine } from '../testing/joining-test-fleet.ts';
import {
  aPool,
  IMAGE_SOURCE,
  STATIC_NETWORK,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import {
  addressesInUse,
  aTestFleet,
  existingResources,
  machinesIn,
  phasesIn,
  REASON,
  untilAtRest,
} from '../testing/test-fleet.ts';

const SOURCES: readonly (readonly [string, SourceSettings])[] = [
  ['image', IMAGE_SOURCE],
  ['full clone', templateSource('full')],
  ['linked clone', templateSource('linked')],
  ['netboot', { kind: 'netboot' }],
];

function poolFrom(source: SourceSettings) {
  const isNetboot = source.kind === 'netboot';
  return aPool({
    source,
    network: STATIC_NETWORK,
    ...(isNetboot && { seed: undefined }),
  });
}

describe.each(SOURCES)('a machine with source %s', (_name, source) => {
  it('is created, becomes ready, and leaves no VM, seed or address after its deletion', async () => {
    const testFleet = aTestFleet(someSettings([poolFrom(source)]));
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const machines = await machinesIn(testFleet.store);
    expect(machines.map(({ phase }) => phase)).toEqual(['ready', 'ready']);
    expect(existingResources(testFleet.hypervisor).machines.sort()).toEqual(
      machines.map(({ id }) => id).sort(),
    );
    expect(existingResources(testFleet.hypervisor).isos).toEqual([]);
    expect(await addressesInUse(testFleet.store)).toEqual(['10.10.10.11', '10.10.10.12']);
    for (const { placement, id, size } of machines) {
      const vm = testFleet.hypervisor.state.vms.get(placement?.vmId ?? 0);
      expect(vm?.options.get('smbios1')).toBe(`uuid=${id}`);
      expect(vm?.options.get('cores')).toBe(String(size.cpu));
      expect(vm?.options.get('tags')).toContain('ca-group-workers');
      expect(vm?.options.get('scsi0')).toContain('size=20480M');
    }

    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor)).toEqual({ vms: [], machines: [], isos: [] });
    expect(await addressesInUse(testFleet.store)).toEqual([]);
    const phases = await phasesIn(testFleet.store);
    expect(phases).toEqual(['gone', 'gone']);
  });
});

describe('the journal of a machine', () => {
  it('has its placement, when it was ready, and its deletion; an Event says that it was ready', async () => {
    const testFleet = aJoiningTestFleet();
    const { id, placement, nodeUid } = await aReadyMachine(testFleet);
    const { host, vmId, name, region } = placement;
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const subject = { pool: 'workers', machine: id, host, region };
    const ready = `node ${name} is ready: VM ${vmId} on host ${host}`;
    const entries = await testFleet.store.journal.read();
    expect(entries.map(({ at: _at, sequence: _sequence, ...entry }) => entry)).toEqual([
      {
        kind: 'did',
        subject: { pool: 'workers' },
        reason: 'MachinesRequested',
        message: 'create 1 machine of pool workers, requested by test: requested by a test',
        numbers: { machines: 1 },
      },
      {
        kind: 'did',
        subject,
        reason: 'MachinePlaced',
        message: expect.stringContaining(`placed ${name} as VM ${vmId}: host ${host}`),
        numbers: expect.objectContaining({ vmId, vms: 0, cpusFree: 30 }),
      },
      {
        kind: 'did',
        subject,
        reason: 'ImageDownloadStarted',
        message: `downloading noble-with-agent-abababababab.qcow2 to local on ${host}`,
      },
      {
        kind: 'did',
        subject: { ...subject, node: name },
        reason: 'MachineReady',
        message: ready,
        numbers: {
          vmId,
          seconds: 14,
          requestedSeconds: 0,
          placedSeconds: 2,
          creatingSeconds: 2,
          configuringSeconds: 2,
          startingSeconds: 2,
          bootingSeconds: 4,
          joiningSeconds: 2,
        },
      },
      {
        kind: 'did',
        subject: { pool: 'workers' },
        reason: 'DeletionRequested',
        message: 'delete 1 machine of pool workers, requested by test: requested by a test',
        numbers: { machines: 1 },
      },
      {
        kind: 'did',
        subject: { ...subject, node: name },
        reason: 'MachineGone',
        message: `${name} was deleted: test: requested by a test`,
      },
    ]);
    expect(testFleet.cluster.state.events).toEqual([
      {
        regarding: { kind: 'Node', name, uid: nodeUid },
        type: 'Normal',
        reason: 'MachineReady',
        message: ready,
      },
    ]);
  });

  it('has the reason of a failure and the back-off of its pool, and Events for both', async () => {
    const testFleet = aJoiningTestFleet();
    const failure = new InvalidConfig('PARAMETER_REFUSED', 'no such bridge');
    testFleet.hypervisor.failNext('createVm', failure);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    const { name, host, region } = machine!.placement!;
    const subject = { pool: 'workers', machine: machine!.id, host, region };
    const entries = (await testFleet.store.journal.read()).slice(-3);
    const backedOff =
      'pool workers creates no machine for 60 s after 1 failure in a row: no such bridge';
    const removed = `${name} failed and was removed: no such bridge`;
    expect(entries.map(({ at: _at, sequence: _sequence, ...entry }) => entry)).toEqual([
      {
        kind: 'refused',
        subject: { pool: 'workers' },
        reason: 'PoolBackedOff',
        message: backedOff,
        numbers: { failures: 1, seconds: 60 },
      },
      {
        kind: 'failed',
        subject,
        reason: 'PARAMETER_REFUSED',
        message: `${name}: no such bridge`,
        numbers: { phase: 'creating' },
      },
      { kind: 'failed', subject, reason: 'MachineFailed', message: removed },
    ]);
    const regarding = { kind: 'Namespace', name: 'pvescaler' };
    expect(testFleet.cluster.state.events).toEqual([
      { regarding, type: 'Warning', reason: 'PoolBackedOff', message: backedOff },
      {
        regarding,
        type: 'Warning',
        reason: 'ParameterRefused',
        message: `${name}: no such bridge`,
      },
      { regarding, type: 'Warning', reason: 'MachineFailed', message: removed },
    ]);
  });
});
