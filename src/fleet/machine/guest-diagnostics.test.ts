// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Machine } from '../../model/machine.ts';
import { Unauthorized } from '../../ports/errors.ts';
import {
  aJoiningMachine,
  aJoiningPool,
  aJoiningTestFleet,
  type JoiningTestFleet,
} from '../testing/joining-test-fleet.ts';
import { someSettings } from '../testing/settings.ts';
import { machinesIn, REASON, replaceVm, runPasses, untilAtRest } from '../testing/test-fleet.ts';
import { maskGuestSecrets } from './guest-diagnostics.ts';

const HASH = 'ab'.repeat(32);

function aFailingFleet(keepFailed = 0): JoiningTestFleet {
  const pool = aJoiningPool({ keepFailed, registrationTimeoutMs: 60_000 });
  return aJoiningTestFleet(someSettings([pool]));
}

/** Creates a machine whose Node never registers, and waits until it is at rest. */
async function failOne(testFleet: JoiningTestFleet): Promise<Machine> {
  testFleet.guests.behaviour = { neverRegisters: true };
  const before = new Set((await machinesIn(testFleet.store)).map(({ id }) => id));
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  await runPasses(testFleet, 25);
  await testFleet.clock.advance(61_000);
  await untilAtRest(testFleet.fleet, testFleet);
  const machine = (await machinesIn(testFleet.store)).find(({ id }) => !before.has(id));
  if (machine === undefined) throw new Error('no machine was created');
  return machine;
}

/** Without the templates. */
function vmsOf({ hypervisor }: JoiningTestFleet) {
  return [...hypervisor.state.vms.values()].filter(({ vmId }) => vmId < 9_000);
}

describe('maskGuestSecrets', () => {
  it.each([
    [`server K10${HASH}::node:abcd refused`, 'server ••• refused'],
    ['token abcdef.0123456789abcdef is invalid', 'token ••• is invalid'],
    ['kubeadm join --token x1y2 10.0.0.2:6443', 'kubeadm join --token ••• 10.0.0.2:6443'],
    ['password: "two words" set', 'password: ••• set'],
    ['K3S_TOKEN=abc', 'K3S_TOKEN=•••'],
    ['ubuntu:$6$salt$hash:1', 'ubuntu:•••:1'],
    ['Authorization: Bearer abc', 'Authorization: •••'],
    ['http://user:pw@proxy:3128/', 'http://user:•••@proxy:3128/'],
    ['\u001b[31mred\u001b[0m', 'red'],
    ['see https://10.0.0.2:6443/cacerts', 'see https://10.0.0.2:6443/cacerts'],
  ])('masks %j', (text, expected) => {
    expect(maskGuestSecrets(text, [])).toBe(expected);
  });

  it('masks a private key that is cut off', () => {
    const text = 'a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc';
    expect(maskGuestSecrets(text, [])).toBe('a\n•••');
  });

  it('leaves no known secret, wherever it is', () => {
    const secret = fc.stringMatching(/^[A-Za-z0-9._:-]{8,40}$/);
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), (known, before, after) => {
        expect(maskGuestSecrets(`${before}${known}${after}`, [known])).not.toContain(known);
      }),
    );
  });
});

describe('a machine that fails to join', () => {
  it('is examined through its agent before it is deleted, without its token', async () => {
    const testFleet = aFailingFleet();
    let startedAt: number | undefined;
    testFleet.hypervisor.guestCommand = (vm, { command }) => {
      if (command[0] === '/bin/sh') {
        startedAt = testFleet.hypervisor.state.vms.get(vm.vmId)?.startedAt;
      }
      const output = 'status: error\nK3S_TOKEN=abc\njoin: x509: certificate has expired\n';
      return { exitCode: 0, output, errorOutput: '' };
    };
    const machine = await failOne(testFleet);
    expect(machine).toMatchObject({
      phase: 'failed',
      diagnostics: {
        lines: ['status: error', 'K3S_TOKEN=•••', 'join: x509: certificate has expired'],
      },
    });
    expect(startedAt).toBeDefined();
    expect(vmsOf(testFleet)).toEqual([]);
    const journal = await testFleet.store.journal.read({ machine: machine.id });
    const entry = journal.find(({ reason }) => reason === 'GuestDiagnostics');
    expect(entry?.message).toContain('x509: certificate has expired');
    expect(JSON.stringify(journal)).not.toContain('abc\\n');
  });

  it('leaves a VM alone that a person put under its id while its guest was examined', async () => {
    const testFleet = aFailingFleet();
    const { hypervisor } = testFleet;
    hypervisor.guestCommand = (vm, { command }) => {
      if (command[0] === '/bin/sh') replaceVm(testFleet, vm);
      return { exitCode: 0, output: 'status: error\n', errorOutput: '' };
    };
    const machine = await failOne(testFleet);
    expect(machine.phase).toBe('failed');
    const [vm] = vmsOf(testFleet);
    expect(vm?.options.get('name')).toBe('a-persons');
    expect(vm?.startedAt).toBeDefined();
    const stops = hypervisor.calls.filter(({ method }) => /^(stop|shutdown)/.test(method));
    expect(stops).toEqual([]);
  });

  it('is deleted all the same when its guest cannot be examined', async () => {
    const testFleet = aFailingFleet();
    testFleet.hypervisor.guestCommand = () => {
      throw new Unauthorized(
        'PERMISSION_MISSING',
        'Permission check failed (VM.GuestAgent.Unrestricted)',
      );
    };
    const machine = await failOne(testFleet);
    expect(machine.phase).toBe('failed');
    expect(machine.diagnostics?.error).toMatch(/VM\.GuestAgent\.Unrestricted\).*; Grant the token/);
  });
});

describe('keepFailed', () => {
  it('keeps the VM stopped, with its id and addresses, without seed, token and Node', async () => {
    const testFleet = aFailingFleet(1);
    const machine = await failOne(testFleet);
    expect(machine).toMatchObject({ phase: 'kept', failure: { code: 'REGISTRATION_TIMED_OUT' } });
    expect(machine.seedVolume).toBeUndefined();
    const [vm] = vmsOf(testFleet);
    expect(vm).toMatchObject({ vmId: machine.placement?.vmId });
    expect(vm?.startedAt).toBeUndefined();
    // It could not be started with a drive whose ISO is missing.
    expect([...(vm?.options.values() ?? [])].join()).not.toContain(':iso/');
    const { pools } = await testFleet.fleet.status();
    expect(pools).toMatchObject([{ target: 0, failed: 1 }]);
    expect(testFleet.cluster.state.existingTokens).toEqual([]);
  });

  it('waits for an upload that would restore the seed, and for a view of its Node', async () => {
    const testFleet = aFailingFleet(1);
    const { hypervisor } = testFleet;
    const runningTasks = hypervisor.runningTasks.bind(hypervisor);
    let isUploading = true;
    hypervisor.runningTasks = async (host, kind, options) =>
      kind === 'upload' && isUploading
        ? [{ upid: 'UPID:upload', host, kind, subject: 0 }]
        : runningTasks(host, kind, options);
    testFleet.guests.behaviour = { neverRegisters: true };
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 25);
    await testFleet.clock.advance(61_000);
    await runPasses(testFleet, 10);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { phase: 'deleting', seedVolume: expect.any(String) },
    ]);
    testFleet.cluster.disconnect();
    await testFleet.clock.advance(120_000);
    await runPasses(testFleet, 2);
    isUploading = false;
    await runPasses(testFleet, 10);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'deleting' }]);
    testFleet.cluster.reconnect();
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'kept' }]);
  });

  it('deletes the oldest when more are kept than configured', async () => {
    const testFleet = aFailingFleet(1);
    const first = await failOne(testFleet);
    await testFleet.clock.advance(3_600_000);
    const second = await failOne(testFleet);
    await untilAtRest(testFleet.fleet, testFleet);
    const phases = new Map((await machinesIn(testFleet.store)).map(({ id, phase }) => [id, phase]));
    expect([phases.get(first.id), phases.get(second.id)]).toEqual(['failed', 'kept']);
    expect(vmsOf(testFleet).map(({ vmId }) => vmId)).toEqual([second.placement?.vmId]);
    expect(second.placement?.vmId).not.toBe(first.placement?.vmId);
  });

  it.each(['cli', 'dashboard'])(
    'a person deletes a kept machine by the %s; an autoscaler only acknowledges its failure',
    async (by) => {
      const testFleet = aFailingFleet(1);
      const { id } = await failOne(testFleet);
      await testFleet.fleet.remove([id], { by: 'cluster-autoscaler', reason: 'failed' });
      await untilAtRest(testFleet.fleet, testFleet);
      const kept = (await machinesIn(testFleet.store)).find((one) => one.id === id);
      expect([kept?.phase, kept?.failure]).toEqual(['kept', undefined]);
      await testFleet.fleet.remove([id], { by, reason: 'examined' });
      await untilAtRest(testFleet.fleet, testFleet);
      expect(vmsOf(testFleet)).toEqual([]);
    },
  );

  it('a VM that a person has destroyed ends the machine', async () => {
    const testFleet = aFailingFleet(1);
    const { id } = await failOne(testFleet);
    for (const { vmId } of vmsOf(testFleet)) testFleet.hypervisor.state.vms.delete(vmId);
    await runPasses(testFleet, 3);
    await untilAtRest(testFleet.fleet, testFleet);
    const machine = (await machinesIn(testFleet.store)).find((one) => one.id === id);
    expect(machine?.phase).toBe('failed');
  });

  it('does not keep a machine that was joining and is deleted on request', async () => {
    const testFleet = aFailingFleet(1);
    const { id } = await aJoiningMachine(testFleet);
    await testFleet.fleet.remove([id], { by: 'cli', reason: 'not needed' });
    await untilAtRest(testFleet.fleet, testFleet);
    expect(vmsOf(testFleet)).toEqual([]);
  });
});
