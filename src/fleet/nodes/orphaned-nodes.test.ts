// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VMID_LABEL } from '../../bootstrap/index.ts';
import { vmProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import { Unreachable } from '../../ports/errors.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import { aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { REGION } from '../testing/settings.ts';
import { runPasses } from '../testing/test-fleet.ts';

describe('orphaned Nodes', () => {
  const anOrphanedNode = (overrides: Partial<ClusterNode> = {}) =>
    aClusterNode({
      name: 'orphaned',
      providerId: vmProviderId(REGION, 1_270),
      ready: false,
      labels: { 'autoscaler.proxmox/group': 'workers', [VMID_LABEL]: '1270' },
      ...overrides,
    });

  async function existsAfterSixMinutes(
    node: ClusterNode,
    testFleet = aJoiningTestFleet(),
  ): Promise<boolean> {
    testFleet.cluster.state.putNode(node);
    await runPasses(testFleet, 2);
    expect(testFleet.cluster.state.nodes.has(node.name)).toBe(true);
    await testFleet.clock.advance(6 * 60_000);
    await runPasses(testFleet, 2);
    return testFleet.cluster.state.nodes.has(node.name);
  }

  it('are deleted after they have had no VM for five minutes', async () => {
    expect(await existsAfterSixMinutes(anOrphanedNode())).toBe(false);
  });

  it.each([
    ['is ready', { ready: true }],
    ['has no group label', { labels: { [VMID_LABEL]: '1270' } }],
    [
      'is labelled with another VM id',
      { labels: { 'autoscaler.proxmox/group': 'workers', [VMID_LABEL]: '1' } },
    ],
    ['is of another region', { providerId: vmProviderId('elsewhere', 1_270) }],
    ['has another provider', { providerId: 'aws:///eu-west-1a/i-0123' }],
    [
      'has a VM',
      {
        providerId: vmProviderId(REGION, 9_001),
        labels: { 'autoscaler.proxmox/group': 'workers', [VMID_LABEL]: '9001' },
      },
    ],
  ])('do not include a Node that %s', async (_what, overrides: Partial<ClusterNode>) => {
    const guests = { settle: () => undefined };
    expect(
      await existsAfterSixMinutes(anOrphanedNode(overrides), {
        ...aJoiningTestFleet(),
        guests,
      } as never),
    ).toBe(true);
  });

  it('are listed by orphans()', async () => {
    const testFleet = aJoiningTestFleet();
    testFleet.cluster.state.putNode(anOrphanedNode());
    expect(await testFleet.fleet.orphans()).toMatchObject([
      { kind: 'node-without-vm', what: 'orphaned' },
    ]);
  });

  it('are kept while Proxmox cannot be read', async () => {
    const testFleet = aJoiningTestFleet();
    testFleet.cluster.state.putNode(anOrphanedNode());
    await runPasses(testFleet, 2);
    for (let minute = 0; minute < 8; minute += 1) {
      testFleet.hypervisor.failNext(
        'view',
        new Unreachable('PVE_UNREACHABLE', 'connection refused'),
      );
      await testFleet.clock.advance(60_000);
      await runPasses(testFleet, 1);
    }
    expect(testFleet.cluster.state.nodes.has('orphaned')).toBe(true);
  });
});
