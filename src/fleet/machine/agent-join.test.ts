// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { JoinSettings } from '../context/join-settings.ts';
import {
  aJoiningPool,
  aJoiningSeed,
  aJoiningTestFleet,
  onlyMachine,
} from '../testing/joining-test-fleet.ts';
import { someSettings } from '../testing/settings.ts';
import { REASON, replaceVm, runPasses } from '../testing/test-fleet.ts';

/** A pool whose join is changed a little. */
function joinedBy(change: (join: JoinSettings) => JoinSettings) {
  const seed = aJoiningSeed();
  return someSettings([aJoiningPool({ seed: { ...seed, join: change(seed.join) } })]);
}

describe('joinByAgent', () => {
  it('passes the token to the guest agent by standard input; neither argv nor the seed contains it', async () => {
    const testFleet = aJoiningTestFleet(
      joinedBy((join) => (join.kind === 'k3s' ? { ...join, via: 'agent' } : join)),
    );
    const commands: { command: string; input: string }[] = [];
    let isSystemUp = false;
    testFleet.hypervisor.guestCommand = (_vm, { command, input = '' }) => {
      commands.push({ command: command.join(' '), input });
      const output = isSystemUp ? 'degraded\n' : 'starting\n';
      isSystemUp = true;
      return { exitCode: 0, output, errorOutput: '' };
    };
    const seeds: string[] = [];
    testFleet.hypervisor.onCall = () => {
      for (const { data } of testFleet.hypervisor.state.volumes.values()) {
        if (data !== undefined) seeds.push(new TextDecoder().decode(data));
      }
    };
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 30);
    const [token] = testFleet.cluster.state.tokens;
    const secret = token?.token.split('.')[1] ?? 'none';
    expect(testFleet.cluster.state.tokens).toHaveLength(1);
    expect(commands[0]?.command).toBe('systemctl is-system-running');
    expect(commands.at(-1)?.command).toBe('systemctl start --no-block pvescaler-join.service');
    expect(commands.some(({ input }) => input.includes(`::${token?.token}`))).toBe(true);
    expect(commands.map(({ command }) => command).join('\n')).not.toContain(secret);
    expect(seeds.length).toBeGreaterThan(0);
    expect(seeds.join('\n')).not.toContain(secret);
  });

  it.each([0, 1, 2])(
    'runs no command in a VM that got the VM id after %i commands',
    async (count) => {
      const testFleet = aJoiningTestFleet(
        joinedBy((join) => (join.kind === 'k3s' ? { ...join, via: 'agent' } : join)),
      );
      const vms: (string | undefined)[] = [];
      const takeVmId = () => {
        const [vm] = [...testFleet.hypervisor.state.vms.values()].filter(
          ({ vmId }) => vmId < 9_000,
        );
        if (vm !== undefined) replaceVm(testFleet, vm);
      };
      testFleet.hypervisor.guestCommand = ({ vmId }) => {
        vms.push(testFleet.hypervisor.state.vms.get(vmId)?.options.get('name'));
        if (vms.length === count) takeVmId();
        return { exitCode: 0, output: 'running\n', errorOutput: '' };
      };
      testFleet.hypervisor.onCall = ({ method }) => {
        if (count === 0 && method === 'guestIsUp') queueMicrotask(takeVmId);
      };
      await testFleet.fleet.scaleTo('workers', 1, REASON);
      await runPasses(testFleet, 30);
      expect(vms).toHaveLength(count);
      expect(vms).not.toContain('a-persons');
    },
  );

  it('writes all files again after the guest was powered off', async () => {
    const testFleet = aJoiningTestFleet(
      joinedBy((join) => (join.kind === 'k3s' ? { ...join, via: 'agent' } : join)),
    );
    const commands: string[] = [];
    testFleet.hypervisor.guestCommand = (_vm, { command }) => {
      commands.push(command.join(' '));
      return { exitCode: 0, output: 'running\n', errorOutput: '' };
    };
    const starts = () => commands.filter((command) => command.includes('start --no-block')).length;
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 30);
    expect(starts()).toBe(1);
    const { placement } = await onlyMachine(testFleet, 'joining');
    const vm = testFleet.hypervisor.state.vms.get(placement.vmId);
    if (vm !== undefined) vm.startedAt = undefined;
    await runPasses(testFleet, 30);
    expect(starts()).toBe(2);
    // A token is kept in memory only until it was sent.
    expect(testFleet.cluster.state.tokens).toHaveLength(2);
  });
});
