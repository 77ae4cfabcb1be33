// SPDX-License-Identifier: Apache-2.0
// One process of the tests beside it: `node worker.ts <task> <database> [<name>]`. It says what happened, one
// JSON object per line, each written to the pipe before the next step begins: what was said, was done.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Lease } from '../../../src/model/lease.ts';
import { PvescalerError } from '../../../src/ports/errors.ts';
import { aJournalEntry, aPoolState } from '../../../src/ports/fakes/sample-records.ts';
import type { Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/store/index.ts';
import { systemClock, systemRandom } from '../../../src/system/index.ts';
import { LEASE_MS, type Said } from './said.ts';

const NOBODY = 65_534;
const [task = '', path = '', name = ''] = process.argv.slice(2);

function say(said: Said): void {
  writeSync(1, `${JSON.stringify(said)}\n`);
}

function open(): Promise<Store> {
  return openSqliteStore({ path, clock: systemClock, random: systemRandom });
}

/** The code of the product's error; anything else ends the process. */
async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return 'none';
  } catch (error) {
    if (error instanceof PvescalerError) return error.code;
    throw error;
  }
}

/** What the parent wants: `pause` and `resume` by line, the end by closing the pipe. */
class Orders {
  isOver = false;
  isPaused = false;
  #changed = Promise.withResolvers<void>();

  constructor() {
    const lines = createInterface({ input: process.stdin });
    lines.on('line', (line) => this.#set({ isPaused: line === 'pause' }));
    lines.on('close', () => this.#set({ isOver: true, isPaused: false }));
  }

  async resumed(): Promise<void> {
    while (this.isPaused) await this.#changed.promise;
  }

  #set(change: Partial<Pick<Orders, 'isOver' | 'isPaused'>>): void {
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
    say({ event: 'acquired', token: lease.token, expiresAt: lease.expiresAt });
    return lease;
  } catch (error) {
    if (!(error instanceof PvescalerError) || error.code !== 'LEASE_HELD') throw error;
    return undefined;
  }
}

/** Read, add one, write back under the lease: loses a count if ever two do it at once. */
async function countOne(store: Store, fence: Lease): Promise<void> {
  const seen = await store.pools.get('counter');
  const count = Number(seen?.value.pool ?? 0) + 1;
  const value = aPoolState({ pool: String(count) });
  const written = seen
    ? await store.pools.replace(seen, value, { fence })
    : await store.pools.create('counter', value, { fence });
  say({ event: 'wrote', token: fence.token, count, revision: written.revision });
  const { sequence } = await store.journal.append(
    aJournalEntry({ at: systemClock.now(), numbers: { token: fence.token, count } }),
  );
  say({ event: 'noted', token: fence.token, count, sequence });
}

async function drive(store: Store, lease: Lease, orders: Orders): Promise<void> {
  for (let turn = 1; !orders.isOver; turn += 1) {
    if (orders.isPaused) {
      say({ event: 'paused', token: lease.token });
      await orders.resumed();
    }
    await countOne(store, lease);
    if (turn % 3 === 0) {
      const { expiresAt } = await store.leases.renew(lease, LEASE_MS);
      say({ event: 'renewed', token: lease.token, expiresAt });
    }
    if (turn % 20 === 0) break;
  }
  say({ event: 'releasing', token: lease.token });
  await store.leases.release(lease);
}

async function fight(): Promise<void> {
  const orders = new Orders();
  const store = await open();
  say({ event: 'opened' });
  while (!orders.isOver) {
    const lease = await acquire(store);
    if (lease === undefined) {
      await systemClock.sleep(2);
      continue;
    }
    const code = await codeOf(drive(store, lease, orders));
    if (code !== 'none') say({ event: 'refused', token: lease.token, code });
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
    say({ event: 'kept', key, sequence });
  }
}

/** Opens and writes one record, as a user whom permissions bind. */
async function openAsUser(): Promise<void> {
  if (process.getuid?.() === 0) {
    process.setgid?.(NOBODY);
    process.setuid?.(NOBODY);
  }
  say({ event: 'outcome', code: await codeOf(openAndWrite()) });
}

async function openAndWrite(): Promise<void> {
  const store = await open();
  await store.pools.create('a', aPoolState());
  await store.close();
}

/** Writes until the disk is full, then counts what is there. */
async function fill(): Promise<void> {
  const store = await open();
  let kept = 0;
  const write = async () => {
    for (; ; kept += 1) {
      await store.pools.create(`k${kept}`, aPoolState({ pool: 'x'.repeat(5_000) }));
    }
  };
  const code = await codeOf(write());
  const found = (await store.pools.list()).length;
  await store.close();
  say({ event: 'filled', code, kept, found });
}

const tasks: Readonly<Record<string, () => Promise<void>>> = {
  fight,
  append,
  fill,
  'open-as-user': openAsUser,
  'open-and-write': async () => say({ event: 'outcome', code: await codeOf(openAndWrite()) }),
};

await tasks[task]?.();
