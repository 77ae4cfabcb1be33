// SPDX-License-Identifier: Apache-2.0
// Records of the first schema version, moved into the cluster and out of it again.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { excludeDriver } from '../../src/cli/exclude-driver.ts';
import { formatStateDocument, parseStateDocument } from '../../src/cli/state-document.ts';
import { importState, readRecords } from '../../src/cli/transfer-state.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Store } from '../../src/ports/store.ts';
import { root } from '../support/pvescaler.ts';
import { StoreBench } from './store-bench.ts';

const FIRST_VERSION = readFileSync(join(root, 'src/cli/testing/state-export-v1.json'), 'utf8');

it('moves all records into the cluster and back, unchanged', async () => {
  const clock = new VirtualClock();
  const bench = new StoreBench(clock);
  onTestFinished(() => bench.cleanup());
  const load = (store: Store, text: string) =>
    excludeDriver(
      {
        store,
        cluster: undefined,
        clock,
        holder: 'command',
        signal: new AbortController().signal,
        onWait: () => undefined,
      },
      (fence) => importState(store, parseStateDocument(text, 'state.json'), fence),
    );
  const store = await bench.open();
  await advanceUntilSettled(clock, load(store, FIRST_VERSION));
  const { identity, records } = JSON.parse(FIRST_VERSION);
  const other = await bench.open();
  expect(await readRecords(other)).toEqual(records);
  expect(await other.identity()).toEqual(identity);
  const exported = formatStateDocument(
    { identity: await other.identity(), records: await readRecords(other) },
    clock.now(),
  );
  const local = new MemoryStore({ clock });
  expect(await load(local, exported)).toMatchObject({ created: 13 });
  expect(await readRecords(local)).toEqual(records);
});
