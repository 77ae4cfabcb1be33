// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import {
  aJoiningMachine,
  aJoiningPool,
  aJoiningSeed,
  aJoiningTestFleet,
  aReadyMachine,
} from '../testing/joining-test-fleet.ts';
import { someSettings } from '../testing/settings.ts';
import { onePass, REASON, runPasses, untilAtRest } from '../testing/test-fleet.ts';

const MINUTE_MS = 60_000;

describe('bootstrap tokens', () => {
  it('creates one token per machine, valid for twice its provision timeout, in the group of the distribution', async () => {
    const testFleet = aJoiningTestFleet();
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.cluster.state.tokens).toHaveLength(2);
    expect(testFleet.cluster.state.tokens[0]).toMatchObject({
      lifetimeMs: 2 * (aJoiningPool().provisionTimeoutMs ?? 0),
      groups: ['system:bootstrappers:k3s:default-node-token'],
      usages: ['authentication'],
    });
  });

  it('reuses the token of a machine when its seed is uploaded again', async () => {
    const testFleet = aJoiningTestFleet();
    testFleet.hypervisor.failNext(
      'uploadIso',
      new Unreachable('PVE_UNREACHABLE', 'connection refused'),
    );
    await aReadyMachine(testFleet);
    expect(testFleet.cluster.state.tokens).toHaveLength(1);
  });

  it('deletes the token of a machine before it is ready', async () => {
    const testFleet = aJoiningTestFleet();
    await aReadyMachine(testFleet);
    expect(testFleet.cluster.state.tokens).toHaveLength(1);
    expect(testFleet.cluster.state.existingTokens).toEqual([]);
  });

  it('deletes the token of a machine that never registered', async () => {
    const testFleet = aJoiningTestFleet();
    await aJoiningMachine(testFleet);
    expect(testFleet.cluster.state.existingTokens).toHaveLength(1);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.cluster.state.existingTokens).toEqual([]);
  });

  it('makes a machine ready although its token cannot be deleted', async () => {
    const testFleet = aJoiningTestFleet();
    testFleet.cluster.failNext(
      'deleteBootstrapTokens',
      new Unreachable('KUBERNETES_UNREACHABLE', 'connection refused'),
    );
    await aReadyMachine(testFleet);
    expect(testFleet.cluster.state.existingTokens).toHaveLength(1);
  });

  it.each([
    ['the configured lifetime, if that is shorter', 60 * MINUTE_MS, 10 * MINUTE_MS, 10 * MINUTE_MS],
    ['at least five minutes', MINUTE_MS, 60 * MINUTE_MS, 5 * MINUTE_MS],
    [
      'the configured lifetime without a provision timeout',
      undefined,
      30 * MINUTE_MS,
      30 * MINUTE_MS,
    ],
  ])('are valid for %s', async (...[, provisionTimeoutMs, ttlMs, lifetimeMs]) => {
    const seed = aJoiningSeed();
    const join = { ...seed.join, token: { kind: 'auto', ttlMs } } as typeof seed.join;
    const pool = aJoiningPool({ seed: { ...seed, join }, provisionTimeoutMs } as never);
    const testFleet = aJoiningTestFleet(someSettings([pool]));
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 12);
    expect(testFleet.cluster.state.tokens[0]).toMatchObject({ lifetimeMs });
  });

  it('are replaced when less than half of their lifetime is left', async () => {
    const testFleet = aJoiningTestFleet();
    const { hypervisor, clock, cluster, fleet } = testFleet;
    const refusal = new Unreachable('PVE_UNREACHABLE', 'connection refused');
    hypervisor.failNext('uploadIso', refusal);
    await fleet.scaleTo('workers', 1, REASON);
    while (cluster.state.tokens.length === 0) await onePass(fleet, testFleet);
    const [created] = cluster.state.tokens;
    clock.setWallClock(clock.now() + (created?.lifetimeMs ?? 0) / 2);
    await runPasses(testFleet, 5);
    expect(cluster.state.tokens).toHaveLength(2);
  });

  it('are not deleted of a pool with a static token, which has none', async () => {
    const seed = aJoiningSeed();
    const token = { kind: 'static', read: () => Promise.resolve('a-static-token') } as const;
    const join = { ...seed.join, token } as typeof seed.join;
    const testFleet = aJoiningTestFleet(someSettings([aJoiningPool({ seed: { ...seed, join } })]));
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 20);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const methods = testFleet.cluster.calls.map(({ method }) => method);
    expect(methods).not.toContain('deleteBootstrapTokens');
    expect(methods).not.toContain('createBootstrapToken');
  });
});
