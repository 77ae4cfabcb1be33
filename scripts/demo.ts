// SPDX-License-Identifier: Apache-2.0
// `npm run demo`: what works so far, shown with the built CLI on files in a folder of its own.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RECONCILE_LEASE } from '../src/model/lease.ts';
import { asPvescalerError } from '../src/ports/errors.ts';
import { openSqliteStore } from '../src/store/index.ts';
import { systemClock, systemRandom } from '../src/system/index.ts';

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'pvescaler-demo-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

function say(text: string): void {
  console.log(`\n── ${text}`);
}

function run(args: readonly string[], expectedExit = 0): void {
  console.log(`$ pvescaler ${args.join(' ')}`);
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'bin/pvescaler.js'), ...args],
    { cwd: folder, encoding: 'utf8' },
  );
  const lines = `${stdout}${stderr}`.trimEnd().split('\n');
  console.log(lines.slice(0, 12).join('\n'));
  if (lines.length > 12) console.log(`… (${lines.length - 12} more lines)`);
  if (status !== expectedExit) throw new Error(`exit code ${status}, expected ${expectedExit}`);
}

say('a first config file, checked');
run(['config', 'init', '-o', 'pvescaler.yaml']);
run(['config', 'validate', 'pvescaler.yaml']);

say('the same with three mistakes: all are told at once, and nothing is done');
const good = readFileSync(join(folder, 'pvescaler.yaml'), 'utf8');
const bad = good
  .replace('limits:', 'limit:')
  .replace('4Gi', '4GB')
  .replace('20000-20999', '20999-20000');
writeFileSync(join(folder, 'mistakes.yaml'), bad);
run(['config', 'validate', 'mistakes.yaml'], 3);

say("another system's file, imported");
const theirs = join(root, 'src/config/import/fixtures/kubenodesmith/scaler-config.yaml');
run(['config', 'import', '--from', 'kubenodesmith', theirs, '-o', 'imported.yaml']);
run(['config', 'validate', 'imported.yaml']);

say('two drivers want the same state: one gets the lease, the other is fenced off');
const path = join(folder, 'state.db');
const open = () => openSqliteStore({ path, clock: systemClock, random: systemRandom });
const [first, second] = [await open(), await open()];
const lease = { name: RECONCILE_LEASE, durationMs: 60_000 };
const held = await first.leases.acquire({ ...lease, holder: 'driver-1' });
console.log(`driver-1 drives with token ${held.token}`);
const denied = await second.leases
  .acquire({ ...lease, holder: 'driver-2' })
  .catch(asPvescalerError);
if (!(denied instanceof Error)) throw new Error('two drivers hold the lease');
console.log(`driver-2: ${denied.message}`);
await first.leases.release(held);
const next = await second.leases.acquire({ ...lease, holder: 'driver-2' });
console.log(`driver-1 gave it back; driver-2 drives with token ${next.token}`);
const pool = { pool: 'workers', allocatable: {} };
const late = await first.pools.create('workers', pool, { fence: held }).catch(asPvescalerError);
if (!(late instanceof Error)) throw new Error('a write with an old token went through');
console.log(`driver-1 writes with its old token: refused, ${late.code}`);
await Promise.all([first.close(), second.close()]);
run(['state', 'show', '--state', path]);

say('and what is not there yet is said plainly');
run(['serve', '--config', 'pvescaler.yaml'], 11);
console.log('\nThe demo is over; nothing is left behind.');
