// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { nodeOf } from './node-of.ts';
import { onStage, REGION } from './stage.ts';

describe('the template', () => {
  it(
    'promises no region where a machine may stand in one of several',
    onStage({ group: { regions: [REGION, 'elsewhere'] } }, async ({ client }) => {
      const answer = await client.call('NodeGroupTemplateNodeInfo', { id: 'workers' });
      const { metadata } = nodeOf(answer['nodeBytes']);
      expect(metadata.labels).toHaveProperty(['kubernetes.io/os'], 'linux');
      expect(metadata.labels).not.toHaveProperty(['topology.kubernetes.io/region']);
    }),
  );
});
