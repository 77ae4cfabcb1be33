// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { loadText, VALID } from '../config/testing/load-text.ts';
import type { PassReport } from '../fleet/index.ts';
import { Unreachable } from '../ports/errors.ts';
import { MemoryPoolObjects } from '../ports/fakes/memory-pool-objects.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { Log } from '../ports/log.ts';
import type { ReloadOutcome } from './config-watcher.ts';
import { PoolDefinitions } from './pool-definitions.ts';
import { PoolWatcher } from './pool-objects.ts';

const SPEC = { size: { cpu: 1, memory: '2Gi' } };

function aWatcher() {
  const clock = new VirtualClock();
  const objects = new MemoryPoolObjects();
  const reloads: string[] = [];
  const reconciles: number[] = [];
  const unread = new Map<string, string | undefined>();
  const lines: string[] = [];
  const write = (message: string) => void lines.push(message);
  const log: Log = { debug: write, info: write, warn: write, error: write, with: () => log };
  const loaded = loadText(VALID);
  if (!loaded.ok) throw new Error('the config is invalid');
  const definitions = new PoolDefinitions({
    objects,
    source: { load: (text, pools) => Promise.resolve(loadText(text, { pools })) },
    current: () => loaded,
  });
  const parts: { outcome: ReloadOutcome } = { outcome: 'done' };
  const watcher = new PoolWatcher({
    objects,
    definitions,
    reconciler: {
      reconcile: async () => void reconciles.push(clock.now()),
      recordPass: () => undefined,
    },
    reload: async () => {
      const result = await definitions.load(VALID);
      reloads.push(result.ok ? result.config.pools.map(({ name }) => name).join() : 'invalid');
      return parts.outcome;
    },
    clock,
    watchdog: {
      expectRead: (source, reason) => void unread.set(source, reason),
      markRead: (source) => void unread.delete(source),
      recordHeartbeat: () => undefined,
    },
    log,
  });
  return { clock, objects, watcher, reloads, reconciles, unread, lines, parts };
}

describe('PoolWatcher', () => {
  it('waits for the first read, and says why it is not done', async () => {
    const { clock, objects, watcher, unread, lines } = aWatcher();
    let isRead = false;
    const reading = watcher.waitForFirstRead(new AbortController().signal);
    void reading.finally(() => {
      isRead = true;
    });
    await clock.advance(3_000);
    expect([isRead, unread.has('ProxmoxPool objects')]).toEqual([false, true]);
    objects.error = new Unreachable('KUBERNETES_UNREACHABLE', 'connection refused');
    await clock.advance(5_000);
    expect(unread.get('ProxmoxPool objects')).toBe('connection refused');
    expect(lines).toHaveLength(1);
    objects.markRead();
    await clock.advance(1_000);
    await reading;
    expect(unread.size).toBe(0);
  });

  it('applies changed definitions, and reconciles after each change and each pass', async () => {
    const { clock, objects, watcher, reloads, reconciles } = aWatcher();
    const stop = new AbortController();
    objects.markRead();
    const running = watcher.run(stop.signal);
    await clock.advance(0);
    expect(reloads).toEqual(['small']);
    objects.put('web', SPEC);
    await clock.advance(0);
    expect(reloads).toEqual(['small', 'small,web']);
    const before = reconciles.length;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is only passed on
    watcher.recordPass({} as PassReport);
    await clock.advance(0);
    expect(reloads).toHaveLength(2);
    expect(reconciles).toHaveLength(before + 1);
    objects.delete('web');
    await clock.advance(0);
    expect(reloads.at(-1)).toBe('small');
    stop.abort();
    await running;
  });

  it('tries again what could not be applied', async () => {
    const { clock, objects, watcher, reloads, parts } = aWatcher();
    const stop = new AbortController();
    objects.put('web', SPEC);
    parts.outcome = 'retry';
    const running = watcher.run(stop.signal);
    await clock.advance(29_000);
    expect(reloads).toHaveLength(1);
    await clock.advance(1_000);
    expect(reloads).toHaveLength(2);
    parts.outcome = 'done';
    await clock.advance(30_000);
    expect(reloads).toHaveLength(3);
    await clock.advance(120_000);
    expect(reloads).toHaveLength(3);
    stop.abort();
    await running;
  });
});
