// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { nodeOf } from './node-of.ts';
import { aPool, onStage, REGION } from './stage.ts';

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

  it(
    'promises what the config says where a node that joined did not know yet',
    onStage({}, async (stage) => {
      const { cpu, memoryBytes, diskBytes } = aPool().size;
      // A kubelet that has not measured its disk yet reports none, and is Ready.
      const learned = { cpuMilli: 1_500, memoryBytes: 2 ** 30, pods: 50, learnedAt: 1 };
      await stage.store.pools.create('workers', {
        pool: 'workers',
        allocatable: {
          [`${cpu}x${memoryBytes}x${diskBytes}`]: { ...learned, ephemeralStorageBytes: 0 },
        },
      });
      await stage.fleet.view.refresh();
      await stage.clock.advance(1_000);
      const answer = await stage.client.call('NodeGroupTemplateNodeInfo', { id: 'workers' });
      const { allocatable } = nodeOf(answer['nodeBytes'])['status'];
      expect(allocatable.cpu.string).toBe('1500m');
      expect(Number(allocatable['ephemeral-storage'].string)).toBeGreaterThan(10 ** 9);
      const warning = stage.warnings.find((words) => words.includes('cpuMilli 1500'));
      expect(warning).not.toContain('ephemeralStorageBytes');
    }),
  );
});
