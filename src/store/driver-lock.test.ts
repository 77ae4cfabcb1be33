// SPDX-License-Identifier: Apache-2.0
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { type DatabaseFixture, withDatabase } from './database-fixture.contract.ts';
import { openDriverLock } from './driver-lock.ts';

const MAX_REQUEST_MS = 36_000;

async function aLock(path: string, clock = new VirtualClock()) {
  const lock = await openDriverLock(path, clock);
  if (lock === undefined) throw new Error(`locks on ${path} prove nothing`);
  return lock;
}

/** Another process that locks, notes itself as `child` and reports the result. */
async function startHolder({ path }: Pick<DatabaseFixture, 'path'>) {
  const script = `
    const { openDriverLock } = await import(${JSON.stringify(join(import.meta.dirname, 'driver-lock.ts'))});
    const lock = await openDriverLock(${JSON.stringify(path)}, { monotonic: () => 0 });
    const isLocked = lock.tryLock();
    lock.claim('child');
    console.log(isLocked);
    setInterval(() => {}, 1000);`;
  const child = spawn(execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  const kill = async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return { isLocked: line === 'true', kill };
}

describe('the lock of the driver', () => {
  it(
    'is free when its process was killed, and names it',
    withDatabase(async ({ path }) => {
      const holder = await startHolder({ path });
      const lock = await aLock(path);
      expect([holder.isLocked, lock.tryLock()]).toEqual([true, false]);
      expect(lock.endedDriver()).toBeUndefined();
      await holder.kill();
      expect(lock.tryLock()).toBe(true);
      expect(lock.endedDriver()).toMatchObject({ holder: 'child' });
      lock.unlock();
    }),
  );

  it(
    'tells how long requests of its last holders may still take effect',
    withDatabase(async ({ path }) => {
      const clock = new VirtualClock();
      const [first, second, third] = await Promise.all([1, 2, 3].map(() => aLock(path, clock)));
      first!.tryLock();
      first!.claim('a');
      first!.recordUnsettled(1_000);
      first!.unlock();
      first!.recordUnsettled(undefined);
      await clock.advance(4_000);
      second!.tryLock();
      expect(second!.endedDriver()?.unsettledMs(MAX_REQUEST_MS)).toBe(31_000);
      second!.claim('b');
      second!.recordUnsettled(undefined);
      second!.unlock();
      third!.tryLock();
      const ended = third!.endedDriver();
      expect(ended?.holder).toBe('b');
      expect(ended?.unsettledMs(MAX_REQUEST_MS)).toBe(31_000);
      await clock.advance(40_000);
      expect(ended?.unsettledMs(MAX_REQUEST_MS)).toBe(0);
      third!.unlock();
    }),
  );

  it.each([
    ['of another boot', (note: string) => note.replace(/"bootId":"[^"]*"/, '"bootId":"other"')],
    ['that is damaged', (note: string) => note.slice(10)],
  ])('proves nothing with a note %s', async (_, damage) =>
    withDatabase(async ({ path }) => {
      const lock = await aLock(path);
      lock.tryLock();
      lock.claim('a');
      lock.unlock();
      const file = `${path}-driver`;
      writeFileSync(file, damage(readFileSync(file, 'utf8')));
      expect(lock.tryLock()).toBe(true);
      expect(lock.endedDriver()).toBeUndefined();
      lock.unlock();
    })(),
  );

  it('does not exist where the folder cannot be read', async () => {
    expect(await openDriverLock('/proc/none/state.db', new VirtualClock())).toBeUndefined();
  });
});
