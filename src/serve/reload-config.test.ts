// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { LoadedConfig, LoadResult, PoolEntry } from '../config/index.ts';
import { loadText, VALID } from '../config/testing/load-text.ts';
import { InvalidConfig, StoreUnusable } from '../ports/errors.ts';
import { MemoryCluster } from '../ports/fakes/memory-cluster.ts';
import { MemoryPoolObjects } from '../ports/fakes/memory-pool-objects.ts';
import { MemoryStore } from '../ports/fakes/memory-store.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { Log } from '../ports/log.ts';
import type { Meters } from '../ports/meters.ts';
import { PoolDefinitions } from './pool-definitions.ts';
import { ConfigReloader } from './reload-config.ts';

const LARGER = VALID.replace('name: small', 'name: large');
const text = (content: string | undefined) => ({ kind: 'text', text: content }) as const;

function loaded(content: string): LoadedConfig {
  const result = loadText(content);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result;
}

function aReloader() {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const cluster = new MemoryCluster({ clock, random: new SeededRandom(1) });
  const results: string[] = [];
  const gauges = new Map<string, number | undefined>();
  const meters: Meters = {
    add: (_name, labels: Readonly<Record<string, string>>) =>
      void results.push(labels['outcome'] ?? ''),
    observe: () => undefined,
    set: (name, values) => void gauges.set(name, values[0]?.value),
  };
  const lines: string[] = [];
  const write = (message: string) => void lines.push(message);
  const log: Log = { debug: write, info: write, warn: write, error: write, with: () => log };
  const limitations = new Map<string, string | undefined>();
  const applied: string[] = [];
  const parts: {
    current: LoadedConfig;
    failure: Error | undefined;
    pools: readonly PoolEntry[];
    load: (content: string | undefined) => Promise<LoadResult>;
  } = {
    current: loaded(VALID),
    failure: undefined,
    pools: [],
    load: (content) => Promise.resolve(loadText(content, { pools: parts.pools })),
  };
  const reloader = new ConfigReloader({
    source: { path: 'c.yaml' },
    load: (content) => parts.load(content),
    text: VALID,
    current: () => parts.current,
    findRestartKeys: ({ config }) =>
      config.pools.filter(({ name }) => name === 'joining').map(() => 'pools.joining.join'),
    apply: (next) => {
      if (parts.failure !== undefined) return Promise.reject(parts.failure);
      parts.current = next;
      applied.push(next.config.pools.map(({ name }) => name).join());
      return Promise.resolve();
    },
    clock,
    journal: store.journal,
    cluster,
    log,
    meters,
    watchdog: { setLimitation: (subject, message) => void limitations.set(subject, message) },
  });
  const entries = async () =>
    (await store.journal.read()).map(({ reason, message }) => `${reason}: ${message}`);
  return {
    clock,
    store,
    cluster,
    reloader,
    parts,
    applied,
    results,
    gauges,
    lines,
    limitations,
    entries,
  };
}

const SUCCESSFUL = 'pvescaler_config_last_reload_successful';
const SUCCESS_AT = 'pvescaler_config_last_reload_success_timestamp_seconds';

describe('ConfigReloader', () => {
  it('applies a valid config, and says which keys have changed', async () => {
    const { clock, cluster, reloader, applied, results, gauges, entries } = aReloader();
    const startedAt = gauges.get(SUCCESS_AT) ?? 0;
    expect(gauges.get(SUCCESSFUL)).toBe(1);
    await clock.advance(60_000);
    expect(await reloader.reload(text(LARGER), false)).toBe('done');
    expect(applied).toEqual(['large']);
    expect(results).toEqual(['applied']);
    expect(gauges.get(SUCCESS_AT)).toBe(startedAt + 60);
    expect(await entries()).toEqual([
      'ConfigApplied: config file c.yaml applied; changed: pools.small, pools.large',
    ]);
    expect(cluster.state.events).toMatchObject([
      {
        regarding: { kind: 'Namespace', name: 'pvescaler' },
        type: 'Normal',
        reason: 'ConfigApplied',
      },
    ]);
  });

  it('changes nothing for an invalid config, and reports every error of it', async () => {
    const { cluster, reloader, applied, results, gauges, limitations, entries } = aReloader();
    const invalid = LARGER.replace('cpu: 2', 'cpu: -1').replace('lab:', 'lab:\n    bad: 1');
    await reloader.reload(text(invalid), false);
    expect(applied).toEqual([]);
    expect(results).toEqual(['invalid']);
    expect(gauges.get(SUCCESSFUL)).toBe(0);
    const [entry = ''] = await entries();
    expect(entry).toMatch(
      /^ConfigRefused: config file c.yaml not applied, the settings in use stay/,
    );
    expect(entry).toContain('c.yaml:3:5: error: proxmox.lab');
    expect(entry).toContain('pools[0].size.cpu');
    expect(entry).toContain(String(limitations.get('config')));
    expect(cluster.state.events).toMatchObject([{ type: 'Warning', reason: 'ConfigRefused' }]);
  });

  it('refuses a missing and an unreadable file', async () => {
    const { reloader, applied, entries } = aReloader();
    await reloader.reload({ kind: 'unreadable', message: 'EACCES: permission denied' }, false);
    await reloader.reload(text('pools: ['), false);
    expect(applied).toEqual([]);
    expect(await entries()).toMatchObject(
      [/EACCES: permission denied/, /c\.yaml:1:/].map(matching),
    );
  });

  it('refuses the whole file if one key needs a restart, and names each', async () => {
    const { reloader, applied, results, entries } = aReloader();
    const other = `${LARGER}http: { health: off }\n`.replace('pve1:8006', 'pve2:8006');
    await reloader.reload(text(other), false);
    await reloader.reload(text(LARGER.replace('name: large', 'name: joining')), false);
    expect(applied).toEqual([]);
    expect(results).toEqual(['restart', 'restart']);
    expect(await entries()).toMatchObject(
      [
        /http\.health, proxmox\.lab\.endpoints cannot change while pvescaler runs; restart it/,
        /pools\.joining\.join cannot change while pvescaler runs/,
      ].map(matching),
    );
  });

  it('logs that the file is valid again when it has the settings in use', async () => {
    const { reloader, results, gauges, lines, limitations } = aReloader();
    await reloader.reload(text('pools: ['), false);
    await reloader.reload(text(`# a comment\n${VALID}`), false);
    expect(results).toEqual(['invalid', 'unchanged']);
    expect(lines).toEqual(['config file c.yaml is valid again and has the settings in use']);
    expect(gauges.get(SUCCESSFUL)).toBe(1);
    expect(limitations.get('config')).toBeUndefined();
  });

  it('applies an unchanged config on request, for the files that it names', async () => {
    const { reloader, applied, entries } = aReloader();
    await reloader.reload(text(VALID), true);
    expect(applied).toEqual(['small']);
    expect(await entries()).toEqual([
      'ConfigApplied: config file c.yaml applied; no key has changed',
    ]);
  });

  it('reports once that something the config names cannot be read, and tries again', async () => {
    const { reloader, parts, applied, results, entries } = aReloader();
    parts.failure = new InvalidConfig('CONFIG_UNREADABLE', '/etc/key.pub does not exist');
    expect(await reloader.reload(text(LARGER), false)).toBe('retry');
    expect(await reloader.reload(text(LARGER), false)).toBe('retry');
    expect(await entries()).toMatchObject([matching(/key\.pub does not exist/)]);
    parts.failure = undefined;
    expect(await reloader.reload(text(LARGER), false)).toBe('done');
    expect(applied).toEqual(['large']);
    expect(results).toEqual(['failed', 'failed', 'applied']);
  });

  it('logs what the journal cannot store', async () => {
    const { reloader, store, lines } = aReloader();
    store.journal.append = () => Promise.reject(new StoreUnusable('STORE_FULL', 'no space'));
    await reloader.reload(text('pools: ['), false);
    expect(lines).toMatchObject([matching(/not applied/)]);
  });

  it('logs warnings that the config in use does not cause', async () => {
    const { reloader, lines } = aReloader();
    const insecure = LARGER.replace('checksumUrl: https://images/SHA256SUMS', 'unverified: true');
    await reloader.reload(text(insecure), false);
    await reloader.reload(text(insecure.replace('cpu: 2', 'cpu: 4')), false);
    expect(lines).toMatchObject([matching(/the image is not verified/)]);
  });

  it('applies pool objects with the file in use while a newer file is refused', async () => {
    const { reloader, parts, applied, limitations, gauges, entries } = aReloader();
    await reloader.reload(text('pools: 3'), false);
    parts.pools = [{ name: 'web', size: { cpu: 1, memory: '2Gi' } }];
    expect(await reloader.reloadPools()).toBe('done');
    expect(applied).toEqual(['small,web']);
    expect(limitations.get('config')).toContain('not applied');
    expect(gauges.get(SUCCESSFUL)).toBe(0);
    expect((await entries()).at(-1)).toBe(
      'ConfigApplied: ProxmoxPool objects applied; changed: pools.web',
    );
    await reloader.reload(text(LARGER), false);
    expect(applied.at(-1)).toBe('large,web');
    expect(limitations.get('config')).toBeUndefined();
    parts.pools = [];
    await reloader.reloadPools();
    expect(applied.at(-1)).toBe('large');
  });

  it('judges pool objects by the file in use after another file was refused', async () => {
    const { reloader, parts, applied, results } = aReloader();
    const objects = new MemoryPoolObjects();
    const definitions = new PoolDefinitions({
      objects,
      source: { load: (content, pools) => Promise.resolve(loadText(content, { pools })) },
      current: () => parts.current,
    });
    parts.load = (content) => definitions.load(content);
    objects.put('web', { size: { cpu: 1, memory: '2Gi' } });
    await reloader.reloadPools();
    expect(applied).toEqual(['small,web']);
    const other = `${VALID.replace('name: small', 'name: web')}log: { level: debug }\n`;
    await reloader.reload(text(other), false);
    expect(results).toEqual(['applied', 'restart']);
    expect(objects.all()?.map((web) => definitions.isInUse(web))).toEqual([true]);
    expect(definitions.hasChanged()).toBe(false);
  });

  it('tries pool objects again when something they need cannot be read', async () => {
    const { reloader, parts, applied, limitations, entries } = aReloader();
    parts.pools = [{ name: 'web', size: { cpu: 1, memory: '2Gi' } }];
    parts.failure = new InvalidConfig('CONFIG_UNREADABLE', 'cannot read the join token');
    expect(await reloader.reloadPools()).toBe('retry');
    expect(await reloader.reloadPools()).toBe('retry');
    expect(limitations.get('pool objects')).toContain('cannot read the join token');
    expect(await entries()).toHaveLength(1);
    parts.failure = undefined;
    expect(await reloader.reloadPools()).toBe('done');
    expect(applied).toEqual(['small,web']);
    expect(limitations.get('pool objects')).toBeUndefined();
  });
});

function matching(pattern: RegExp): unknown {
  return expect.stringMatching(pattern);
}
