// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { vmProviderId } from '../../model/provider-id.ts';
import { Conflict, NotFound, Unauthorized } from '../../ports/errors.ts';
import {
  aJoiningPool,
  aJoiningSeed,
  aJoiningTestFleet,
  aReadyMachine,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import { REGION, someSettings } from '../testing/settings.ts';
import { aFleet, journalReasonsIn, onePass, REASON, runPasses } from '../testing/test-fleet.ts';

describe('completeNode', () => {
  it('sets the provider id of a Node whose kubelet set none', async () => {
    const testFleet = aJoiningTestFleet();
    testFleet.guests.behaviour = { withoutProviderId: true };
    const { placement, providerId } = await aReadyMachine(testFleet);
    expect(providerId).toBe(vmProviderId(REGION, placement.vmId));
    expect(testFleet.cluster.state.nodes.get(placement.name)?.providerId).toBe(providerId);
  });

  it('keeps a label that another field manager owns, records the owner once, and removes the startup taint', async () => {
    const testFleet = aJoiningTestFleet();
    const role = 'node-role.kubernetes.io/worker';
    const label = (value: string) => {
      const [node] = testFleet.cluster.state.nodes.values();
      if (node === undefined || node.labels[role] === value) return;
      testFleet.cluster.state.updateNode(node.name, { labels: { ...node.labels, [role]: value } });
    };
    testFleet.cluster.onCall = ({ method }) => {
      if (method === 'declareNode') label('set-by-another-manager');
    };
    await aReadyMachine(testFleet);
    await runPasses(testFleet, 3);
    const node = () => [...testFleet.cluster.state.nodes.values()][0];
    expect(node()).toMatchObject({ labels: { [role]: 'set-by-another-manager' }, taints: [] });
    const recorded = async () =>
      (await testFleet.store.journal.read())
        .filter(({ reason }) => reason === 'NodeDiffers')
        .map(({ message }) => message);
    expect(await recorded()).toHaveLength(1);
    expect((await recorded())[0]).toContain(
      `label ${role} is not set to '' because others owns it`,
    );
    const declarations = () =>
      testFleet.cluster.calls.filter(({ method }) => method === 'declareNode').length;
    const before = declarations();
    await runPasses(testFleet, 3);
    expect(declarations()).toBe(before);
    testFleet.cluster.onCall = undefined;
    label('changed again');
    await runPasses(testFleet, 3);
    expect(declarations()).toBe(before + 1);
    const { [role]: _theirs, ...labels } = node()?.labels ?? {};
    testFleet.cluster.state.updateNode(node()?.name ?? '', { labels });
    await runPasses(testFleet, 2);
    expect(node()?.labels[role]).toBe('');
  });

  it('removes labels that the pool no longer has, and none that others set', async () => {
    const testFleet = aJoiningTestFleet();
    const role = 'node-role.kubernetes.io/worker';
    const { placement } = await aReadyMachine(testFleet);
    const node = () => testFleet.cluster.state.nodes.get(placement.name);
    const theirs = 'node-role.kubernetes.io/theirs';
    const labels = { ...node()?.labels, [theirs]: '' };
    testFleet.cluster.state.updateNode(placement.name, { labels });
    const without = aFleet({ ...testFleet, settings: someSettings([]), seed: 9 });
    await onePass(without, testFleet);
    expect(node()?.labels).toMatchObject({ [role]: '', [theirs]: '' });
    const seed = aJoiningSeed();
    const registration = { ...seed.registration, labels: { tier: 'small' } };
    const settings = someSettings([aJoiningPool({ seed: { ...seed, registration } })]);
    const fleet = aFleet({ ...testFleet, settings, seed: 10 });
    for (let pass = 0; pass < 3; pass += 1) await onePass(fleet, testFleet);
    expect(node()?.labels).toMatchObject({ tier: 'small', [theirs]: '' });
    expect(Object.keys(node()?.labels ?? {})).not.toContain(role);
  });
});

describe('completeNode, while others change the Node', () => {
  it.each([
    new Conflict('PROVIDER_ID_SET', 'another provider id'),
    new NotFound('NODE_NOT_FOUND', 'no such node'),
    new Conflict('NODE_CHANGED', 'changed meanwhile'),
  ])('tries again with the next view after $code, without an error', async (error) => {
    const testFleet = aJoiningTestFleet();
    testFleet.cluster.failNext('declareNode', error);
    testFleet.cluster.failNext('changeNode', error);
    const { placement } = await aReadyMachine(testFleet);
    const node = testFleet.cluster.state.nodes.get(placement.name);
    expect(node).toMatchObject({ taints: [], labels: { 'node-role.kubernetes.io/worker': '' } });
    expect(await journalReasonsIn(testFleet.store)).not.toContain(error.code);
  });

  it('records any other error and tries again', async () => {
    const testFleet = aJoiningTestFleet();
    const error = new Unauthorized('PERMISSION_MISSING', 'nodes is forbidden');
    testFleet.cluster.failNext('declareNode', error);
    await aReadyMachine(testFleet);
    expect(await journalReasonsIn(testFleet.store)).toContain(error.code);
  });

  it('leaves the provider id to a cloud controller manager', async () => {
    const testFleet = aJoiningTestFleet(joiningSettings({ cloudController: true }));
    testFleet.guests.behaviour = { withoutProviderId: true };
    const { placement, providerId } = await aReadyMachine(testFleet);
    expect(testFleet.cluster.state.nodes.get(placement.name)?.providerId).toBe('');
    expect(providerId).toBeUndefined();
  });

  it('leaves the provider id of a Node that waits for a cloud controller manager', async () => {
    const testFleet = aJoiningTestFleet();
    const { guests, cluster, fleet } = testFleet;
    guests.behaviour = { withoutProviderId: true, neverReady: true };
    const settle = guests.settle.bind(guests);
    guests.settle = () => {
      settle();
      for (const { name, taints } of cluster.state.nodes.values()) {
        if (taints.some(({ key }) => key === UNINITIALIZED.key)) continue;
        cluster.state.updateNode(name, { taints: [...taints, UNINITIALIZED] });
      }
    };
    await fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 25);
    expect([...cluster.state.nodes.values()]).toMatchObject([{ providerId: '' }]);
  });
});

const UNINITIALIZED = {
  key: 'node.cloudprovider.kubernetes.io/uninitialized',
  value: 'true',
  effect: 'NoSchedule',
} as const;

describe('recordDifferences', () => {
  it('names labels and taints that are missing, and not the startup taint', async () => {
    const taint = { key: 'gpu', value: 'yes', effect: 'NoSchedule' } as const;
    const seed = aJoiningSeed({ taints: [taint] });
    const testFleet = aJoiningTestFleet(someSettings([aJoiningPool({ seed })]));
    testFleet.cluster.onCall = ({ method }) => {
      const [node] = testFleet.cluster.state.nodes.values();
      if (method !== 'changeNode' || node === undefined) return;
      const { tier: _removed, ...labels } = node.labels;
      const taints = node.taints.map((one) => (one.key === 'gpu' ? { ...one, value: 'no' } : one));
      testFleet.cluster.state.updateNode(node.name, { labels, taints });
    };
    await aReadyMachine(testFleet);
    const entries = await testFleet.store.journal.read();
    expect(entries.filter(({ reason }) => reason === 'NodeDiffers')).toMatchObject([
      {
        message: expect.stringMatching(
          /settings: label tier is missing, not 'small'; taint gpu:NoSchedule is missing$/,
        ) as unknown,
      },
    ]);
  });

  it('records once how a Node differs from its pool, and emits a warning Event', async () => {
    const testFleet = aJoiningTestFleet();
    testFleet.cluster.onCall = ({ method }) => {
      const [node] = testFleet.cluster.state.nodes.values();
      if (method === 'changeNode' && node !== undefined && node.labels['tier'] !== 'large') {
        testFleet.cluster.state.updateNode(node.name, {
          labels: { ...node.labels, tier: 'large' },
        });
      }
    };
    await aReadyMachine(testFleet);
    await runPasses(testFleet, 3);
    const recorded = (await testFleet.store.journal.read()).filter(
      ({ reason }) => reason === 'NodeDiffers',
    );
    expect(recorded).toHaveLength(1);
    expect(recorded[0]?.message).toContain("label tier is 'large', not 'small'");
    expect(testFleet.cluster.state.events).toContainEqual(
      expect.objectContaining({ reason: 'NodeDiffers', type: 'Warning' }),
    );
  });
});
