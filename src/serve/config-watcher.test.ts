// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { ConfigWatcher, type Content, type ReloadOutcome } from './config-watcher.ts';

function aWatcher() {
  const clock = new VirtualClock();
  const file: { text: string | undefined; error?: Error } = { text: 'first' };
  const reloads: string[] = [];
  let outcome: ReloadOutcome = 'done';
  const watcher = new ConfigWatcher(
    {
      clock,
      readText: () =>
        file.error === undefined ? Promise.resolve(file.text) : Promise.reject(file.error),
      reload: (content, isRequested) => {
        reloads.push(`${describeContent(content)}${isRequested ? ', requested' : ''}`);
        return Promise.resolve(outcome);
      },
    },
    'first',
  );
  const stop = new AbortController();
  void watcher.run(stop.signal);
  const setOutcome = (next: ReloadOutcome) => {
    outcome = next;
  };
  return { clock, file, reloads, watcher, stop, setOutcome };
}

function describeContent(content: Content): string {
  return content.kind === 'text' ? (content.text ?? '(missing)') : content.message;
}

describe('ConfigWatcher', () => {
  it('does nothing while the content is the same', async () => {
    const { clock, reloads } = aWatcher();
    await clock.advance(60_000);
    expect(reloads).toEqual([]);
  });

  it('handles each new content once', async () => {
    const { clock, file, reloads } = aWatcher();
    file.text = 'second';
    await clock.advance(60_000);
    expect(reloads).toEqual(['second']);
    file.text = 'first';
    await clock.advance(60_000);
    expect(reloads).toEqual(['second', 'first']);
  });

  it('waits until two readings are equal, so that half of a file is not taken for all of it', async () => {
    const { clock, file, reloads } = aWatcher();
    for (const text of ['', 'se', 'secon', 'second']) {
      file.text = text;
      await clock.advance(2_000);
    }
    expect(reloads).toEqual([]);
    await clock.advance(2_000);
    expect(reloads).toEqual(['second']);
  });

  it('handles a file that is missing or cannot be read once, and its return', async () => {
    const { clock, file, reloads } = aWatcher();
    file.text = undefined;
    await clock.advance(20_000);
    file.error = new Error('EACCES');
    await clock.advance(20_000);
    delete file.error;
    file.text = 'first';
    await clock.advance(20_000);
    expect(reloads).toEqual(['(missing)', 'EACCES', 'first']);
  });

  it('reads at once on request, also an unchanged content', async () => {
    const { clock, file, reloads, watcher } = aWatcher();
    await clock.advance(500);
    watcher.request();
    await clock.advance(0);
    expect(reloads).toEqual(['first, requested']);
    file.text = 'second';
    watcher.request();
    await clock.advance(0);
    await clock.advance(60_000);
    expect(reloads).toEqual(['first, requested', 'second, requested']);
  });

  it('handles a request that came before it ran', async () => {
    const { clock, watcher, reloads, stop } = aWatcher();
    stop.abort();
    await clock.advance(0);
    watcher.request();
    void watcher.run(new AbortController().signal);
    await clock.advance(0);
    expect(reloads).toEqual(['first, requested']);
  });

  it('tries the same content again after half a minute if something else failed', async () => {
    const { clock, file, reloads, setOutcome } = aWatcher();
    setOutcome('retry');
    file.text = 'second';
    await clock.advance(5_000);
    expect(reloads).toEqual(['second']);
    setOutcome('done');
    await clock.advance(32_000);
    expect(reloads).toEqual(['second', 'second']);
    await clock.advance(60_000);
    expect(reloads).toHaveLength(2);
  });
});
