// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import {
  aJoiningMachine,
  aJoiningPool,
  aJoiningTestFleet,
  aReadyMachine,
} from '../testing/joining-test-fleet.ts';
import { REASON, untilAtRest } from '../testing/test-fleet.ts';

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
});
