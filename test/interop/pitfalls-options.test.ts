// SPDX-License-Identifier: Apache-2.0
// Known mistakes of servers for this protocol in the options of a node group, one test each.
import { describe, expect, it } from 'vitest';
import { decodeNode } from './decode-node.ts';
import { aGroup, aPool, withServer } from './test-server.ts';

const POOL = aPool();

describe('pitfalls of node group options', () => {
  it(
    'pitfall-10: sends templates to every generation, and no options message when no option is set',
    withServer({}, async ({ client, clientOf }) => {
      const bytes: Buffer = (await client.call('NodeGroupTemplateNodeInfo', { id: 'workers' }))[
        'nodeBytes'
      ];
      const old = (await clientOf('a').call('NodeGroupTemplateNodeInfo', { id: 'workers' }))[
        'nodeInfo'
      ];
      expect(old.metadata.name).toBe(decodeNode(bytes)['metadata'].name);
      for (const generation of ['a0', 'a', 'b', 'c'] as const) {
        const answer = await clientOf(generation).call('NodeGroupGetOptions', {
          id: 'workers',
          defaults: {},
        });
        expect(answer['nodeGroupAutoscalingOptions']).toBeNull();
      }
    }),
  );

  it(
    'pitfall-10: sends complete options in both encodings',
    withServer(
      {
        group: {
          clusterAutoscaler: { ...aGroup(POOL).clusterAutoscaler, scaleDownUnneededTimeMs: 60_000 },
        },
      },
      async ({ clientOf }) => {
        const legacy = {
          scaleDownUnneededTime: { duration: '600000000000' },
          scaleDownUnreadyTime: { duration: '1200000000000' },
        };
        const a0 = await clientOf('a0').call('NodeGroupGetOptions', {
          id: 'workers',
          defaults: legacy,
        });
        expect(a0['nodeGroupAutoscalingOptions']).toBeNull();
        const aDefaults = {
          ...legacy,
          MaxNodeProvisionTime: { duration: '420000000000' },
          scaleDownUtilizationThreshold: 0.7,
        };
        const a = (
          await clientOf('a').call('NodeGroupGetOptions', { id: 'workers', defaults: aDefaults })
        )['nodeGroupAutoscalingOptions'];
        expect(a).toMatchObject({
          scaleDownUtilizationThreshold: 0.7,
          scaleDownUnneededTime: { duration: '60000000000' },
          scaleDownUnreadyTime: { duration: '1200000000000' },
          MaxNodeProvisionTime: { duration: '420000000000' },
        });
        const cDefaults = {
          scaleDownUnneededDuration: { seconds: 600 },
          scaleDownUnreadyDuration: { seconds: 1200 },
          MaxNodeProvisionDuration: { seconds: 420 },
        };
        const b = (
          await clientOf('b').call('NodeGroupGetOptions', {
            id: 'workers',
            defaults: { ...aDefaults, ...cDefaults },
          })
        )['nodeGroupAutoscalingOptions'];
        expect(b).toMatchObject({
          scaleDownUnneededTime: { duration: '60000000000' },
          scaleDownUnneededDuration: { seconds: '60' },
        });
        const c = (
          await clientOf('c').call('NodeGroupGetOptions', { id: 'workers', defaults: cDefaults })
        )['nodeGroupAutoscalingOptions'];
        expect(c).toMatchObject({
          scaleDownUnneededDuration: { seconds: '60', nanos: 0 },
          scaleDownUnreadyDuration: { seconds: '1200' },
          MaxNodeProvisionDuration: { seconds: '420' },
        });
      },
    ),
  );

  it(
    'pitfall-23: zero and false count as set options',
    withServer(
      {
        group: {
          clusterAutoscaler: {
            ...aGroup(POOL).clusterAutoscaler,
            scaleDownUtilizationThreshold: 0,
            zeroOrMaxNodeScaling: false,
          },
        },
      },
      async ({ client }) => {
        const defaults = {
          scaleDownUtilizationThreshold: 0.5,
          zeroOrMaxNodeScaling: true,
          ignoreDaemonSetsUtilization: true,
        };
        const answer = await client.call('NodeGroupGetOptions', { id: 'workers', defaults });
        expect(answer['nodeGroupAutoscalingOptions']).toMatchObject({
          scaleDownUtilizationThreshold: 0,
          zeroOrMaxNodeScaling: false,
          ignoreDaemonSetsUtilization: true,
          MaxNodeProvisionDuration: { seconds: '900' },
        });
      },
    ),
  );
});
