// SPDX-License-Identifier: Apache-2.0
// A worker process of these tests: `node worker.ts <task> <database> [<name>]`. It reports each step as a line of JSON,
// written after the step is done and before the next one begins.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Lease } from '../../../src/model/lease.ts';
import { PvescalerError } from '../../../src/ports/errors.ts';
import { aJournalEntry, aPoolState } from '../../../src/ports/fakes/sample-records.ts';
import type { Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/store/index.ts';
import { systemClock, systemRandom } from '../../../src/system/index.ts';
import { LEASE_MS, type WorkerReport } from './worker-report.ts';

const NOBODY_UID = 65_534;
const [task = '', path = '', name = ''] = process.argv.slice(2);

function report(step: WorkerReport): void {
  writeSync(1, `${JSON.stringify(step)}\n`);
}

function open(): Promise<Store> {
  return openSqliteStore({ path, clock: systemClock, random: systemRandom });
}

/** The code of a PvescalerError, or 'none'; any other error ends the process. */
async function catchCode(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return 'none';
  } catch (error) {
    if (error instanceof PvescalerError) return error.code;
    throw error;
  }
}

/** Commands of the parent on standard input: `pause`, `resume`; closing it ends the worker. */
class ParentCommands {
  isClosed = false;
  isPaused = false;
  #changed = Promise.withResolvers<void>();

  constructor() {
    const lines = createInterface({ input: process.stdin });
    lines.on('line', (line) => this.#set({ isPaused: line === 'pause' }));
    lines.on('close', () => this.#set({ isClosed: true, isPaused: false }));
  }

  async waitUntilResumed(): Promise<void> {
    while (this.isPaused) await this.#changed.promise;
  }

  #set(change: Partial<Pick<ParentCommands, 'isClosed' | 'isPaused'>>): void {
    Object.assign(this, change);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

async function acquire(store: Store): Promise<Lease | undefined> {
  try {
    const lease = await store.leases.acquire({
      name: 'reconcile',
      holder: name,
      durationMs: LEASE_MS,
    });
    report({ event: 'acquired', token: lease.token, expiresAt: lease.expiresAt });
    return lease;
  } catch (error) {
    if (!(error instanceof PvescalerError) || error.code !== 'LEASE_HELD') throw error;
    return undefined;
  }
}

/** Reads, increments and writes under the lease: two concurrent holders would lose an increment. */
async function incrementCounter(store: Store, fence: Lease): Promise<void> {
  const seen = await store.pools.get('counter');
  const count = Number(seen?.value.pool ?? 0) + 1;
  const value = aPoolState({ pool: String(count) });
  const written = seen
    ? await store.pools.replace(seen, value, { fence })
    : await store.pools.create('counter', value, { fence });
  report({ event: 'wrote', token: fence.token, count, revision: written.revision });
  const { sequence } = await store.journal.append(
    aJournalEntry({ at: systemClock.now(), numbers: { token: fence.token, count } }),
  );
  report({ event: 'noted', token: fence.token, count, sequence });
}

async function drive(store: Store, lease: Lease, commands: ParentCommands): Promise<void> {
  for (let step = 1; !commands.isClosed; step += 1) {
    if (commands.isPaused) {
      report({ event: 'paused', token: lease.token });
      await commands.waitUntilResumed();
    }
    await incrementCounter(store, lease);
    if (step % 3 === 0) {
      const { expiresAt } = await store.leases.renew(lease, LEASE_MS);
      report({ event: 'renewed', token: lease.token, expiresAt });
    }
    if (step % 20 === 0) break;
  }
  report({ event: 'releasing', token: lease.token });
  await store.leases.release(lease);
}

async function contend(): Promise<void> {
  const commands = new ParentCommands();
  const store = await open();
  report({ event: 'opened' });
  while (!commands.isClosed) {
    const lease = await acquire(store);
    if (lease === undefined) {
      await systemClock.sleep(2);
      continue;
    }
    const code = await catchCode(drive(store, lease, commands));
    if (code !== 'none') report({ event: 'refused', token: lease.token, code });
  }
  await store.close();
}

/** Writes until it is killed. */
async function append(): Promise<void> {
  const store = await open();
  for (let n = 0; ; n += 1) {
    const key = `${name}-${n}`;
    await store.pools.create(key, aPoolState());
    const { sequence } = await store.journal.append(aJournalEntry({ message: key }));
    report({ event: 'kept', key, sequence });
  }
}

/** Opens and writes one record, as a user other than root. */
async function openAsUser(): Promise<void> {
  if (process.getuid?.() === 0) {
    process.setgid?.(NOBODY_UID);
    process.setuid?.(NOBODY_UID);
  }
  report({ event: 'outcome', code: await catchCode(openAndWrite()) });
}

async function openAndWrite(): Promise<void> {
  const store = await open();
  await store.pools.create('a', aPoolState());
  await store.close();
}

/** Writes until the disk is full, then counts the records. */
async function fill(): Promise<void> {
  const store = await open();
  let kept = 0;
  const write = async () => {
    for (; ; kept += 1) {
      await store.pools.create(`k${kept}`, aPoolState({ pool: 'x'.repeat(5_000) }));
    }
  };
  const code = await catchCode(write());
  const found = (await store.pools.list()).length;
  await store.close();
  report({ event: 'filled', code, kept, found });
}

const tasks: Readonly<Record<string, () => Promise<void>>> = {
  contend,
  append,
  fill,
  'open-as-user': openAsUser,
  'open-and-write': async () => report({ event: 'outcome', code: await catchCode(openAndWrite()) }),
};

await tasks[task]?.();
