// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { decodeNode } from './decode-node.ts';
import { aPool, REGION, withServer } from './test-server.ts';

describe('the template node', () => {
  it(
    'has no region label when the pool has several regions',
    withServer({ group: { regions: [REGION, 'elsewhere'] } }, async ({ client }) => {
      const response = await client.call('NodeGroupTemplateNodeInfo', { id: 'workers' });
      const { metadata } = decodeNode(response['nodeBytes']);
      expect(metadata.labels).toHaveProperty(['kubernetes.io/os'], 'linux');
      expect(metadata.labels).not.toHaveProperty(['topology.kubernetes.io/region']);
    }),
  );

  it(
    'uses the config for a resource that a joined node reported as zero',
    withServer({}, async (fixture) => {
      const { cpu, memoryBytes, diskBytes } = aPool().size;
      // A kubelet that has not measured its disk yet reports none although it is Ready.
      const learned = { cpuMilli: 1_500, memoryBytes: 2 ** 30, pods: 50, learnedAt: 1 };
      await fixture.store.pools.create('workers', {
        pool: 'workers',
        allocatable: {
          [`${cpu}x${memoryBytes}x${diskBytes}`]: { ...learned, ephemeralStorageBytes: 0 },
        },
      });
      await fixture.fleet.view.refresh();
      await fixture.clock.advance(1_000);
      const response = await fixture.client.call('NodeGroupTemplateNodeInfo', { id: 'workers' });
      const { allocatable } = decodeNode(response['nodeBytes'])['status'];
      expect(allocatable.cpu.string).toBe('1500m');
      expect(Number(allocatable['ephemeral-storage'].string)).toBeGreaterThan(10 ** 9);
      const warning = fixture.warnings.find((text) => text.includes('cpuMilli 1500'));
      expect(warning).not.toContain('ephemeralStorageBytes');
    }),
  );
});
