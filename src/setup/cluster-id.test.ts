// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Config } from '../config/index.ts';
import { MemoryCluster } from '../ports/fakes/memory-cluster.ts';
import { MemoryStore } from '../ports/fakes/memory-store.ts';
import { aMachine } from '../ports/fakes/sample-records.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { resolveClusterId } from './cluster-id.ts';
import type { SetupContext } from './context.ts';

const FILE = '/state.db.cluster-id';

interface OpenOptions {
  readonly cluster?: MemoryCluster;
  readonly id?: string;
  readonly kubernetes?: { readonly namespace: string };
  readonly isDriving?: boolean;
}

/** An installation whose database, file, config and cluster can be exchanged. */
function anInstallation() {
  const clock = new VirtualClock();
  const texts = new Map<string, string>();
  const files: SetupContext['files'] = {
    read: (path) => Promise.resolve(texts.get(path)),
    write: (path, text) => {
      texts.set(path, text);
      return Promise.resolve('written');
    },
  };
  const clusterNumber = (seed: number) =>
    new MemoryCluster({ clock, random: new SeededRandom(seed) });
  const newStore = () => new MemoryStore({ clock });
  const open = (store: MemoryStore, { cluster, id, ...given }: OpenOptions = {}) =>
    resolveClusterId(
      { files, random: new SeededRandom(9) },
      { state: { path: '/state.db', kubernetes: given.kubernetes }, cluster: { id } } as Config,
      { store, cluster, isDriving: given.isDriving ?? true },
    );
  return { texts, clusterNumber, newStore, open };
}

async function addMachine(store: MemoryStore): Promise<void> {
  const machine = aMachine();
  await store.machines.create(machine.id, machine);
}

describe('resolveClusterId', () => {
  it('is the uid of the cluster, also after the database is lost', async () => {
    const { clusterNumber, newStore, open } = anInstallation();
    const cluster = clusterNumber(1);
    const uid = await cluster.uid();
    expect(await open(newStore(), { cluster })).toBe(uid);
    expect(await open(newStore(), { cluster })).toBe(uid);
    expect(await open(newStore())).toBe(uid);
  });

  it('refuses another cluster after the database was restored without its file, and names both uids', async () => {
    const { clusterNumber, newStore, open, texts } = anInstallation();
    const store = newStore();
    const first = await open(store, { cluster: clusterNumber(1) });
    texts.clear();
    const other = clusterNumber(2);
    const refusal = open(store, { cluster: other });
    await expect(refusal).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
    await expect(refusal).rejects.toThrow(
      `belongs to the Kubernetes cluster with uid ${first}, but the connected cluster has uid ${await other.uid()}`,
    );
    expect(texts.size).toBe(0);
    expect(await open(store, { cluster: clusterNumber(1) })).toBe(first);
  });

  it('refuses another cluster after the database was lost', async () => {
    const { clusterNumber, newStore, open } = anInstallation();
    await open(newStore(), { cluster: clusterNumber(1) });
    await expect(open(newStore(), { cluster: clusterNumber(2) })).rejects.toThrow(/uid/);
  });

  it('refuses a database that does not belong to the file beside it', async () => {
    const { newStore, open, texts } = anInstallation();
    const store = newStore();
    await open(store);
    texts.set(FILE, 'another-id\n');
    await expect(open(store)).rejects.toThrow(/another-id: they do not belong together/);
  });

  it('keeps a generated id when a cluster is connected later, and then refuses another cluster', async () => {
    const { clusterNumber, newStore, open } = anInstallation();
    const store = newStore();
    const id = await open(store);
    await addMachine(store);
    expect(await open(store, { cluster: clusterNumber(1) })).toBe(id);
    await expect(open(store, { cluster: clusterNumber(2) })).rejects.toThrow(/uid/);
  });

  it('takes the uid of a database without one from the file, or from an id that equals it', async () => {
    for (const keepsFile of [true, false]) {
      const { clusterNumber, newStore, open, texts } = anInstallation();
      const uid = await clusterNumber(1).uid();
      const store = newStore();
      await store.identity({ id: uid });
      await addMachine(store);
      if (keepsFile) texts.set(FILE, `${uid}\nkubernetes\n`);
      expect(await open(store, { cluster: clusterNumber(1) })).toBe(uid);
      expect(await store.identity()).toEqual({ id: uid, clusterUid: uid });
    }
  });

  it.each([
    ['an id of unknown origin', { id: 'unknown-id' }, 'unknown-id'],
    ['no id', {}, 'marker-id'],
  ])(
    'refuses a database with machines and %s until cluster.id confirms it',
    async (_what, identity, confirmed) => {
      const { clusterNumber, newStore, open } = anInstallation();
      const cluster = clusterNumber(1);
      const store = newStore();
      await store.identity(identity);
      await addMachine(store);
      await expect(open(store, { cluster })).rejects.toMatchObject({
        message: expect.stringMatching(/records of 1 machine /) as unknown,
        hint: expect.stringMatching(/set cluster\.id to/) as unknown,
      });
      expect(await open(store, { cluster, id: confirmed })).toBe(confirmed);
      expect(await open(store, { cluster })).toBe(confirmed);
    },
  );

  it('is cluster.id when that is set, so that two clusters with one uid have two ids', async () => {
    const ids = ['first', 'second'].map(async (id) => {
      const { clusterNumber, newStore, open } = anInstallation();
      return open(newStore(), { cluster: clusterNumber(1), id });
    });
    expect(await Promise.all(ids)).toEqual(['first', 'second']);
  });

  it('refuses another cluster.id than that of the database, and names both', async () => {
    const { clusterNumber, newStore, open } = anInstallation();
    const store = newStore();
    const cluster = clusterNumber(1);
    const id = await open(store, { cluster });
    await expect(open(store, { cluster, id: 'changed' })).rejects.toThrow(
      `cluster.id is changed, but the state database belongs to the cluster id ${id}`,
    );
    expect(await open(store, { cluster, id })).toBe(id);
  });

  it('adopts the machines of a replaced cluster with cluster.id and a new database', async () => {
    const { clusterNumber, newStore, open, texts } = anInstallation();
    const id = await open(newStore(), { cluster: clusterNumber(1) });
    texts.clear();
    expect(await open(newStore(), { cluster: clusterNumber(2), id })).toBe(id);
  });
});

describe('resolveClusterId with state in Kubernetes', () => {
  const kubernetes = { namespace: 'pvescaler' };

  it('uses no file', async () => {
    const { clusterNumber, newStore, open, texts } = anInstallation();
    const store = newStore();
    const cluster = clusterNumber(1);
    texts.set(FILE, 'of another installation\n');
    expect(await open(store, { cluster, kubernetes })).toBe(await cluster.uid());
    expect([...texts.values()]).toEqual(['of another installation\n']);
    expect(await store.identity()).toEqual({
      id: await cluster.uid(),
      clusterUid: await cluster.uid(),
    });
  });

  it('stores no id without the uid of the cluster', async () => {
    const { newStore, open } = anInstallation();
    const store = newStore();
    await open(store, { kubernetes, isDriving: false });
    expect(await store.identity()).toEqual({});
  });

  it('names the namespace and its key when cluster.id differs', async () => {
    const { clusterNumber, newStore, open } = anInstallation();
    const store = newStore();
    const cluster = clusterNumber(1);
    await open(store, { cluster, kubernetes });
    await expect(open(store, { cluster, kubernetes, id: 'other' })).rejects.toMatchObject({
      message: expect.stringContaining('the state in namespace pvescaler of Kubernetes belongs to'),
      hint: expect.stringContaining('another state.kubernetes.namespace for other'),
    });
  });
});
