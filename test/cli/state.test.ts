// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aMachine, aMachineId, anIntent } from '../../src/ports/fakes/sample-records.ts';
import { openSqliteStore } from '../../src/store/index.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { aFolder, pvescaler } from '../support/pvescaler.ts';

const PLACEMENT = {
  region: 'lab',
  host: 'pve1',
  vmId: 1_250,
  name: 'worker-1',
  diskStorage: 'local-lvm',
  addresses: [],
};

async function aDatabase(): Promise<string> {
  const path = join(aFolder(), 'state.db');
  const store = await openSqliteStore({ path, clock: systemClock, random: systemRandom });
  const id = aMachineId(1);
  await store.machines.create(id, aMachine({ id, phase: 'booting', placement: PLACEMENT }));
  await store.intents.create('i', anIntent({ id: 'i', state: 'open' }));
  await store.leases.acquire({ name: 'reconcile', holder: 'test', durationMs: 3_600_000 });
  await store.journal.append({
    at: Date.UTC(2026, 0, 2),
    kind: 'refused',
    subject: { pool: 'small' },
    reason: 'HostFull',
    message: 'pve1 has 3 GiB free, 4 are needed',
  });
  await store.close();
  return path;
}

describe('pvescaler state', () => {
  it('shows machines by phase, intents and the driver', async () => {
    const path = await aDatabase();
    const { exitCode, out } = pvescaler(['state', 'show', '--state', path]);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/machines {2}1 booting\nintents {3}1 open/);
    expect(out).toMatch(/driver {4}test, token 1\n/);
    expect(JSON.parse(pvescaler(['state', 'show', '--json', '--state', path]).out)).toMatchObject({
      path,
      machines: { booting: 1, ready: 0 },
      driver: { holder: 'test', token: 1, isCurrent: true },
    });
  });

  it('prints the journal, filtered by pool', async () => {
    const path = await aDatabase();
    expect(pvescaler(['state', 'journal', '--state', path]).out).toBe(
      '2026-01-02T00:00:00.000Z  refused  HostFull: pve1 has 3 GiB free, 4 are needed  (pool small)\n',
    );
    expect(pvescaler(['state', 'journal', '--state', path, '--pool', 'other']).out).toBe('');
    expect(
      JSON.parse(pvescaler(['state', 'journal', '--state', path, '--json']).out),
    ).toMatchObject([{ reason: 'HostFull', at: '2026-01-02T00:00:00.000Z' }]);
    expect(pvescaler(['state', 'journal', '--state', path, '--limit', '0']).exitCode).toBe(2);
  });

  it('finds the journal of a machine by its name, its id, or a prefix of them', async () => {
    const path = await aDatabase();
    const store = await openSqliteStore({ path, clock: systemClock, random: systemRandom });
    const id = aMachineId(1);
    const entry = { at: 0, kind: 'did', reason: 'MachineReady', message: 'it is ready' } as const;
    await store.journal.append({ ...entry, subject: { machine: id } });
    await store.journal.append({ ...entry, subject: { machine: 'removed-long-ago' } });
    await store.close();
    for (const text of [id, id.slice(0, 8), PLACEMENT.name, 'work', 'removed-long-ago']) {
      const { out } = pvescaler(['state', 'journal', '--state', path, '--machine', text]);
      expect(out.trim().split('\n')).toHaveLength(1);
      expect(out).toContain('MachineReady');
    }
  });

  it('creates no database, and rejects a file that is not one', () => {
    const folder = aFolder();
    const missing = pvescaler(['state', 'show', '--state', 'missing.db'], { cwd: folder });
    expect(missing).toMatchObject({ exitCode: 13, out: '' });
    expect(missing.err).toMatch(/the state database missing\.db does not exist/);
    const other = join(folder, 'notes.txt');
    writeFileSync(other, 'my notes, not a database\n');
    const refused = pvescaler(['state', 'show', '--state', other]);
    expect(refused.exitCode).toBe(13);
    expect(refused.err).toMatch(/not a pvescaler database/);
    expect(readFileSync(other, 'utf8')).toBe('my notes, not a database\n');
  });
});

describe('pvescaler state export and import', () => {
  async function release(path: string): Promise<void> {
    const store = await openSqliteStore({ path, clock: systemClock, random: systemRandom });
    const lease = await store.leases.read('reconcile');
    if (lease !== undefined) await store.leases.release(lease);
    await store.close();
  }

  it('move all records to another database, with the journal if asked for', async () => {
    const path = await aDatabase();
    await release(path);
    const file = join(aFolder(), 'state.json');
    const exported = pvescaler(['state', 'export', file, '--state', path, '--journal']);
    expect(exported).toMatchObject({ exitCode: 0, out: '' });
    expect(exported.err).toContain('exported 1 machine and 1 intent');
    const target = join(aFolder(), 'new.db');
    const imported = pvescaler(['state', 'import', file, '--state', target, '--json']);
    expect(JSON.parse(imported.out)).toEqual({
      location: target,
      records: { intents: 1, machines: 1, drains: 0, pools: 0 },
      created: 2,
      unchanged: 0,
      journalEntries: 1,
    });
    expect(pvescaler(['state', 'journal', '--state', target]).out).toContain('HostFull');
    const copy = pvescaler(['state', 'export', '--journal', '--state', target]).out;
    const [before, after] = [JSON.parse(readFileSync(file, 'utf8')), JSON.parse(copy)];
    expect(after.records).toEqual(before.records);
    expect(after.journal).toEqual(before.journal);
  });

  it('refuse while a driver is active; an export for a backup need not', async () => {
    const path = await aDatabase();
    const refused = pvescaler(['state', 'export', '--state', path]);
    expect(refused).toMatchObject({ exitCode: 5, out: '' });
    expect(refused.err).toContain('a driver is active: test');
    const backup = pvescaler(['state', 'export', '--live', '--state', path]);
    expect(JSON.parse(backup.out)).toMatchObject({ kind: 'StateExport', schemaVersion: 2 });
    const file = join(aFolder(), 'state.json');
    writeFileSync(file, backup.out);
    const full = pvescaler(['state', 'import', file, '--state', path]);
    expect(full).toMatchObject({ exitCode: 5 });
    await release(path);
    expect(pvescaler(['state', 'import', file, '--state', path]).out).toContain(
      '0 records written, 2 there already',
    );
  });

  it('refuse a file that is no export, and one that is not there', () => {
    const file = join(aFolder(), 'state.json');
    writeFileSync(file, '{}');
    const state = ['--state', join(aFolder(), 'x.db')];
    expect(pvescaler(['state', 'import', file, ...state]).exitCode).toBe(2);
    const missing = pvescaler(['state', 'import', '/nowhere.json', ...state]);
    expect(missing.exitCode).toBe(2);
    expect(missing.err).toContain('/nowhere.json does not exist');
  });
});

describe('a state.path that cannot be used', () => {
  it.each([
    ['whose folder is a file', '/file/state.db'],
    ['below /proc', undefined],
  ])('%s is reported with its reason', (_what, below) => {
    const folder = aFolder();
    writeFileSync(join(folder, 'file'), '');
    const config = pvescaler(['config', 'init']).out.replace(
      'secretFile: /etc/',
      'secretFile: /tmp/',
    );
    const file = join(folder, 'c.yaml');
    writeFileSync(file, config);
    const path = below === undefined ? '/proc/pvescaler/state.db' : `${folder}${below}`;
    const { exitCode, err } = pvescaler(['orphans', '--config', file, '--state', path]);
    expect(exitCode).toBe(13);
    expect(err).toMatch(/the folder of the state database .* cannot be created/);
  });
});
