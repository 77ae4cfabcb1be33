// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine } from '../../model/machine.ts';
import { NotFound, Unreachable } from '../../ports/errors.ts';
import { someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  onePass,
  REASON,
  untilAtRest,
} from '../testing/test-fleet.ts';
import { isTaskOver } from './machine-reconcile.ts';
import type { ReconcileContext } from './reconcile-context.ts';

describe('isTaskOver', () => {
  const vm = { region: 'memory', vmId: 1_250 };
  const task = { upid: 'UPID', host: 'pve1', kind: 'clone' } as const;
  const down = new Unreachable('PVE_UNREACHABLE', 'no route');
  const removed = new NotFound('HOST_NOT_FOUND', 'no such host');
  const seenOn = (host: string, isBeingCreated = false) => ({ host, isBeingCreated });

  const unknown = new NotFound('TASK_NOT_FOUND', 'no task');
  it.each([
    { when: 'Proxmox no longer knows it', error: unknown, hosts: [], expected: true },
    {
      when: 'its host is down and its VM runs elsewhere',
      error: down,
      seen: seenOn('pve2'),
      hosts: ['pve1'],
      expected: true,
    },
    {
      when: 'its host is down and its VM is there',
      error: down,
      seen: seenOn('pve1'),
      hosts: ['pve1'],
      expected: false,
    },
    // A clone task runs on the host of the template.
    {
      when: 'its VM is being created elsewhere',
      error: down,
      seen: seenOn('pve2', true),
      hosts: ['pve1'],
      expected: false,
    },
    { when: 'its host was removed', error: removed, hosts: ['pve2'], expected: true },
    {
      when: 'another host does not know its host',
      error: removed,
      hosts: ['pve1'],
      expected: false,
    },
    { when: 'no host is known', error: removed, hosts: [], expected: false },
  ])('is $expected when $when', ({ error, seen, hosts, expected }) => {
    const views = new Map([['memory', { hosts: hosts.map((name) => ({ name })) }]]);
    const context = { views, vmInView: () => seen } as unknown as ReconcileContext;
    expect(isTaskOver(context, vm, { task, error })).toBe(expected);
  });
});

describe('pollTask', () => {
  it('polls the task of a record of an earlier version, which has neither kind nor host', async () => {
    const settings = someSettings();
    const testFleet = aTestFleet(settings);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    let task: Machine['task'];
    for (let pass = 0; pass < 60 && task === undefined; pass += 1) {
      await onePass(testFleet.fleet, testFleet);
      task = (await machinesIn(testFleet.store))[0]?.task;
    }
    const [seen] = await testFleet.store.machines.list();
    if (seen === undefined || task === undefined) throw new Error('no task was recorded');
    const { upid, startedAt } = task;
    await testFleet.store.machines.replace(seen, { ...seen.value, task: { upid, startedAt } });
    const fleet = aFleet({ ...testFleet, settings, seed: 2 });
    await untilAtRest(fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
  });
});
