// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  aJoiningTestFleet,
  aReadyMachine,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import { machinesIn, REASON, runPasses } from '../testing/test-fleet.ts';

describe('recordNode', () => {
  it('records the provider id of the Node verbatim, whatever its format', async () => {
    const testFleet = aJoiningTestFleet();
    testFleet.guests.behaviour = { withoutProviderId: true };
    testFleet.cluster.onCall = ({ method }) => {
      const [node] = testFleet.cluster.state.nodes.values();
      if (method === 'declareNode' && node?.providerId === '') {
        testFleet.cluster.state.updateNode(node.name, { providerId: `k3s://${node.name}` });
      }
    };
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 60);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine).toMatchObject({ phase: 'ready', providerId: `k3s://${machine?.nodeName}` });
  });

  it('records the new uid when the Node was registered again', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement, providerId } = await aReadyMachine(testFleet);
    testFleet.cluster.state.updateNode(placement.name, { uid: 'uid-of-the-second' });
    await runPasses(testFleet, 2);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { nodeUid: 'uid-of-the-second', nodeName: placement.name, providerId },
    ]);
  });

  it('keeps the known provider id while the Node has none', async () => {
    const testFleet = aJoiningTestFleet(joiningSettings({ cloudController: true }));
    const { placement, providerId } = await aReadyMachine(testFleet);
    const uid = 'uid-of-the-second';
    testFleet.cluster.state.updateNode(placement.name, { providerId: '', uid });
    await runPasses(testFleet, 2);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ providerId, nodeUid: uid }]);
  });
});
