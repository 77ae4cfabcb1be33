// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VMID_LABEL } from '../../bootstrap/index.ts';
import { vmProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import { Unreachable } from '../../ports/errors.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import {
  aJoiningTestFleet,
  aReadyMachine,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import { REGION } from '../testing/settings.ts';
import { runPasses } from '../testing/test-fleet.ts';
import { swapUuidBytes } from './find-node.ts';

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

  it('are recorded when they are deleted', async () => {
    const testFleet = aJoiningTestFleet();
    await existsAfterSixMinutes(anOrphanedNode(), testFleet);
    const recorded = await testFleet.store.journal.read();
    expect(recorded.filter(({ reason }) => reason === 'OrphanedNodeRemoved')).toMatchObject([
      {
        kind: 'did',
        subject: { region: REGION, node: 'orphaned' },
        message: `removed node orphaned: VM 1270 of region ${REGION} is gone`,
        numbers: { vmId: 1_270 },
      },
    ]);
  });

  it('are left to the cloud controller manager if there is one', async () => {
    const testFleet = aJoiningTestFleet(joiningSettings({ cloudController: true }));
    expect(await existsAfterSixMinutes(anOrphanedNode(), testFleet)).toBe(true);
  });

  it('are kept while no host is online that could confirm that the VM is gone', async () => {
    const testFleet = aJoiningTestFleet();
    for (const host of ['pve1', 'pve2', 'pve3']) testFleet.hypervisor.setOnline(host, false);
    expect(await existsAfterSixMinutes(anOrphanedNode(), testFleet)).toBe(true);
  });

  it('are kept for five minutes after Kubernetes could not be read', async () => {
    const testFleet = aJoiningTestFleet();
    testFleet.cluster.state.putNode(anOrphanedNode());
    await runPasses(testFleet, 2);
    testFleet.cluster.disconnect();
    await testFleet.clock.advance(6 * 60_000);
    await runPasses(testFleet, 1);
    testFleet.cluster.reconnect();
    await runPasses(testFleet, 2);
    expect(testFleet.cluster.state.nodes.has('orphaned')).toBe(true);
    await testFleet.clock.advance(5 * 60_000);
    await runPasses(testFleet, 2);
    expect(testFleet.cluster.state.nodes.has('orphaned')).toBe(false);
  });

  it('are kept for five minutes after they were Ready again', async () => {
    const testFleet = { ...aJoiningTestFleet(), guests: { settle: () => undefined } };
    const { cluster, clock } = testFleet;
    cluster.state.putNode(anOrphanedNode());
    await runPasses(testFleet, 2);
    await clock.advance(4 * 60_000);
    cluster.state.updateNode('orphaned', { ready: true });
    await runPasses(testFleet, 1);
    cluster.state.updateNode('orphaned', { ready: false });
    await runPasses(testFleet, 1);
    await clock.advance(2 * 60_000);
    await runPasses(testFleet, 2);
    expect(cluster.state.nodes.has('orphaned')).toBe(true);
  });

  it('are kept when they are Ready again before a failed deletion is repeated', async () => {
    const testFleet = { ...aJoiningTestFleet(), guests: { settle: () => undefined } };
    const { cluster, clock } = testFleet;
    cluster.state.putNode(anOrphanedNode());
    await runPasses(testFleet, 2);
    await clock.advance(6 * 60_000);
    cluster.failNext('deleteNode', new Unreachable('KUBERNETES_UNREACHABLE', 'connection refused'));
    await runPasses(testFleet, 1);
    expect(cluster.calls.filter(({ method }) => method === 'deleteNode')).toHaveLength(1);
    cluster.state.updateNode('orphaned', { ready: true });
    await runPasses(testFleet, 5);
    expect(cluster.state.nodes.has('orphaned')).toBe(true);
  });

  it('are not deleted a second time while they are terminating', async () => {
    const testFleet = aJoiningTestFleet();
    const { cluster } = testFleet;
    const node = anOrphanedNode({ isTerminating: true });
    await existsAfterSixMinutes(node, testFleet);
    expect(cluster.calls.map(({ method }) => method)).not.toContain('deleteNode');
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

  it.each([
    ['the VM exists although the view does not show it', undefined],
    ['the VM cannot be read', new Unreachable('PVE_UNREACHABLE', 'connection refused')],
  ])('are kept while %s', async (_what, error) => {
    const testFleet = aJoiningTestFleet();
    const { hypervisor } = testFleet;
    const template = hypervisor.state.vms.get(9_001);
    if (template === undefined) throw new Error('the test fleet has no template');
    if (error === undefined) hypervisor.state.vms.set(1_270, { ...template, vmId: 1_270 });
    else hypervisor.vmConfig = () => Promise.reject(error);
    const view = hypervisor.view.bind(hypervisor);
    hypervisor.view = async (options) => {
      const seen = await view(options);
      return { ...seen, vms: seen.vms.filter(({ vmId }) => vmId !== 1_270) };
    };
    expect(await existsAfterSixMinutes(anOrphanedNode(), testFleet)).toBe(true);
  });

  it.each([
    ['has its SMBIOS UUID', (id: string) => ({ systemUuid: id.toUpperCase() })],
    [
      'has its SMBIOS UUID in the byte order of old firmware',
      (id: string) => ({ systemUuid: swapUuidBytes(id) }),
    ],
    ['is named in its record', (_id: string, nodeUid: string) => ({ uid: nodeUid })],
  ])('do not include a Node of a machine that %s', async (_what, sameAs) => {
    const testFleet = aJoiningTestFleet();
    const { id, nodeUid = '' } = await aReadyMachine(testFleet);
    const node = anOrphanedNode(sameAs(id, nodeUid));
    expect(await existsAfterSixMinutes(node, testFleet)).toBe(true);
  });

  it('do not include a Node with the VM id of a machine, even if that VM is missing', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement } = await aReadyMachine(testFleet);
    const { vmId } = placement;
    testFleet.hypervisor.state.vms.delete(vmId);
    const node = anOrphanedNode({
      providerId: vmProviderId(REGION, vmId),
      labels: { 'autoscaler.proxmox/group': 'workers', [VMID_LABEL]: String(vmId) },
    });
    // The machine's own Node stays Ready, so that the machine is kept.
    const guests = { settle: () => undefined };
    expect(await existsAfterSixMinutes(node, { ...testFleet, guests } as never)).toBe(true);
  });
});
