// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VALID } from '../config/testing/load-text.ts';
import { MemoryCluster } from '../ports/fakes/memory-cluster.ts';
import { MemoryStore } from '../ports/fakes/memory-store.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { CommandHost } from './context.ts';
import { withStore } from './with-store.ts';

const IN_CLUSTER = `${VALID}cluster: { kubeconfig: /kubeconfig }\n`;

/** Whether the command uses the Lease of the cluster. */
async function usesLease(text: string, options: Parameters<typeof withStore>[1]) {
  const clock = new VirtualClock();
  const cluster = new MemoryCluster({ clock, random: new SeededRandom(1) });
  const open = () => Promise.resolve({ store: new MemoryStore({ clock }), warnings: [] });
  const context = {
    clock,
    environment: {},
    homeFolder: '/home/me',
    workingFolder: '/',
    tempFolders: [],
    files: { read: () => Promise.resolve(text) },
    adapters: {
      openStore: open,
      openOrCreateStore: open,
      openKubernetesStore: async () => (await open()).store,
      connectKubernetes: () => Promise.resolve({ cluster, server: undefined }),
    },
    err: () => undefined,
  };
  let found: unknown;
  await withStore({ context } as unknown as CommandHost, options, async ({ openCluster }) => {
    found = await openCluster();
  });
  return found === cluster;
}

describe('the Lease of the cluster', () => {
  const config = '/c.yaml';

  it('is used for records in the cluster', async () => {
    const text = `${IN_CLUSTER}state: { kubernetes: {} }\n`;
    expect(await usesLease(text, { config })).toBe(true);
    expect(await usesLease(text, { config, mayCreate: true })).toBe(true);
  });

  it('is used for an import into a database: a driver may be active with the records in the cluster', async () => {
    expect(await usesLease(IN_CLUSTER, { config, mayCreate: true })).toBe(true);
  });

  it('is not used for an export of a database, nor without a config', async () => {
    expect(await usesLease(IN_CLUSTER, { config })).toBe(false);
    expect(await usesLease(IN_CLUSTER, { state: '/state.db', mayCreate: true })).toBe(false);
  });
});
