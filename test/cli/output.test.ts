// SPDX-License-Identifier: Apache-2.0
// Colors, progress, --quiet, errors as JSON, prefixes of names and completion of names, with the built CLI.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aMachine, aMachineId } from '../../src/ports/fakes/sample-records.ts';
import { openSqliteStore } from '../../src/store/index.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { aLab } from '../support/lab.ts';
import { aFolder, COMMAND_TIMEOUT_MS, commandLine, pvescaler } from '../support/pvescaler.ts';

/** Names share a prefix; `workers-bb` has failed, and its name begins like that of a machine that exists. */
const MACHINES = [
  ['workers-aa11', 'ready', 'workers'],
  ['workers-aa22', 'ready', 'workers'],
  ['workers-bb33', 'ready', 'workers'],
  ['workers-bb44', 'failed', 'workers'],
  ['k8s-db-1', 'ready', 'role:db'],
] as const;

async function aDatabase(folder: string): Promise<string> {
  mkdirSync(join(folder, 'state'), { recursive: true });
  const path = join(folder, 'state/state.db');
  const store = await openSqliteStore({ path, clock: systemClock, random: systemRandom });
  for (const [index, [name, phase, pool]] of MACHINES.entries()) {
    const id = aMachineId(index + 1);
    const placement = {
      region: 'lab',
      host: 'pve1',
      vmId: 1_250 + index,
      name,
      diskStorage: 'local-lvm',
      addresses: [],
    };
    const failure = {
      code: 'BOOTSTRAP_FAILED',
      message: LONG_REASON,
      at: 0,
      phase: 'joining',
    } as const;
    const machine = aMachine({ id, pool, phase, placement });
    await store.machines.create(id, phase === 'failed' ? { ...machine, failure } : machine);
  }
  await store.close();
  return path;
}

const LONG_REASON =
  'cloud-init ended with status error: the script that joins the cluster could not reach the API server at 192.0.2.1';

/** A config without a reachable server, and a database with MACHINES. */
async function aSite() {
  const folder = aFolder();
  const state = await aDatabase(folder);
  const config = pvescaler(['config', 'init']).out.replace(
    'secretFile: /etc/',
    'secretFile: /tmp/',
  );
  const path = join(folder, 'c.yaml');
  writeFileSync(path, `${config}\ncluster: { id: lab }\n`.replace(/^cluster:\n( +.*\n)+/m, ''));
  return { path, state, options: ['--config', path, '--state', state] };
}

describe('errors as JSON', () => {
  it.each([
    [['pool', 'scale', 'x', '--too', '1', '-o', 'json'], 'USAGE', 2, 'pvescaler pool scale'],
    [
      ['state', 'show', '--state', '/nonexistent', '--output=json'],
      'STORE_UNREADABLE',
      13,
      'pvescaler state show',
    ],
    [['replay', '/nonexistent', '--json'], 'REQUEST_INVALID', 2, 'pvescaler replay'],
  ])('%j is one object', (...[args, code, exitCode, command]) => {
    const result = pvescaler(args);
    expect(result).toMatchObject({ exitCode, out: '' });
    expect(JSON.parse(result.err)).toEqual({
      class: expect.any(String),
      code,
      message: expect.any(String),
      hint: expect.any(String),
      command,
      facts: {},
    });
  });

  it('list the problems of a config', () => {
    const path = join(aFolder(), 'c.yaml');
    writeFileSync(path, 'apiVersion: pvescaler.dev/v1alpha1\npoolz: []\n');
    const { err, exitCode } = pvescaler(['pools', '-o', 'json', '--config', path]);
    expect(exitCode).toBe(3);
    expect(JSON.parse(err)).toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/^\d errors; nothing was done$/),
      problems: expect.arrayContaining([expect.objectContaining({ line: 2 })]),
    });
  });
});

describe('--quiet', () => {
  it('leaves results and errors', async () => {
    const lab = await aLab();
    const loud = lab.run('pool', 'scale', 'workers', '--to', '1');
    expect(loud.err).toContain(': ready\n');
    const quiet = lab.run('pool', 'scale', 'workers', '--to', '0', '--quiet');
    expect(quiet).toEqual({ exitCode: 0, out: 'pool workers has 0 machines\n', err: '' });
    const first = pvescaler(['-q', 'pool', 'scale', 'none', '--to', '1', '--config', lab.path]);
    expect(first.err).toBe(
      'pvescaler: the config has no pool none\n  It has workers. [POOL_NOT_FOUND]\n',
    );
    const config = pvescaler(['pools', '--quiet', '--config', join(lab.folder, 'cluster.yaml')]);
    expect(config.err).toMatch(/errors; nothing was done\.\n$/);
  });
});

const ESCAPE = '\u001b[';
const CLEAR = '\r\u001b\\[K';

describe('colors', () => {
  const run = (args: readonly string[], env: Readonly<Record<string, string>>) =>
    pvescaler(['state', 'show', '--state', '/nonexistent', ...args], { env }).err;

  it('are printed with FORCE_COLOR, and not with --no-color or NO_COLOR', () => {
    expect(run([], {})).not.toContain(ESCAPE);
    expect(run([], { FORCE_COLOR: '1' })).toContain(`${ESCAPE}31mpvescaler:`);
    expect(run(['--no-color'], { FORCE_COLOR: '1' })).not.toContain(ESCAPE);
    expect(run([], { FORCE_COLOR: '1', NO_COLOR: '1' })).not.toContain(ESCAPE);
    expect(run([], { FORCE_COLOR: '0' })).not.toContain(ESCAPE);
  });
});

/** Runs the CLI on a terminal; with 0 columns it has no size. */
function onTerminal(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  columns = 80,
): string {
  const [program, programArgs] = commandLine(args);
  const command = [program, ...programArgs].map((word) => `'${word}'`).join(' ');
  const run = spawnSync('script', ['-qec', `stty cols ${columns}; ${command}`, '/dev/null'], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', TERM: 'xterm', ...env },
    timeout: COMMAND_TIMEOUT_MS,
  });
  return run.stdout.replaceAll('\r\n', '\n');
}

describe.skipIf(spawnSync('script', ['--version']).status !== 0)('on a terminal', () => {
  it('tables are 80 columns wide and have a bold header', async () => {
    const { options } = await aSite();
    const text = onTerminal(['machines', '--all', ...options]);
    expect(text).toContain(`${ESCAPE}1mNAME `);
    expect(text).toContain('192.0.2.1');
    const plain = onTerminal(['machines', '--all', '--no-color', ...options]);
    expect(plain).not.toContain(ESCAPE);
    expect(plain.split('\n').filter((line) => line.length > 80)).toEqual([]);
    const piped = pvescaler(['machines', '--all', ...options]).out;
    expect(piped).toContain(LONG_REASON);
  });

  it('tables have one line per row when the terminal has no size', async () => {
    const { options } = await aSite();
    const text = onTerminal(['machines', '--all', '--no-color', '-q', ...options], {}, 0);
    expect(text).toContain(LONG_REASON);
  });

  it('a command that waits shows its progress in one line, and removes it', async () => {
    const lab = await aLab();
    const args = ['pool', 'scale', 'workers', '--to', '1', '--config', lab.path];
    const text = onTerminal(args);
    expect(text).toMatch(new RegExp(`${CLEAR}1 (requested|creating|booting|configuring); \\d+s`));
    expect(text).toMatch(new RegExp(`${CLEAR}pool workers has 1 machine\n$`));
    expect(onTerminal([...args, '--quiet'])).toBe('pool workers has 1 machine\n');
  });
});

describe('a machine', () => {
  it('is found by a unique prefix of its name, and an ambiguous one names the candidates', async () => {
    const { options } = await aSite();
    const show = (text: string) => pvescaler(['machine', 'show', text, '-o', 'name', ...options]);
    expect(show('workers-aa1').out).toBe('workers-aa11\n');
    // Machines that exist come first.
    expect(show('workers-b').out).toBe('workers-bb33\n');
    expect(show('workers-bb44').out).toBe('workers-bb44\n');
    expect(show('k').out).toBe('k8s-db-1\n');
    const ambiguous = show('workers-aa');
    expect(ambiguous.exitCode).toBe(2);
    expect(ambiguous.err).toContain(
      "the names or ids of 2 machines start with 'workers-aa': workers-aa11, workers-aa22",
    );
    expect(show('none').exitCode).toBe(4);
    expect(pvescaler(['vm', 'show', 'k8s-d', '-o', 'name', ...options]).out).toBe('k8s-db-1\n');
  });
});

describe('completion of names', () => {
  const complete = (...words: readonly string[]) => pvescaler(['complete', '--', ...words]);

  it('reads pools from the config and machines from the database', async () => {
    const { path, options } = await aSite();
    const pools = complete('pool', 'scale', '--config', path, '');
    expect(pools).toMatchObject({ exitCode: 0, err: '' });
    const names = pvescaler(['config', 'show', '-o', 'json', path]).out.match(
      /"value": "workers"/g,
    );
    expect(names).not.toBeNull();
    expect(pools.out).toContain('workers\n');
    expect(complete('state', 'journal', ...options, '--pool', 'w').out).toBe('workers\n');
    expect(complete('explain', 'pool', '-c', path, 'w').out).toBe('workers\n');
    expect(complete('machine', 'show', ...options, '').out).toBe(
      'k8s-db-1\nworkers-aa11\nworkers-aa22\nworkers-bb33\n',
    );
    expect(complete('machine', 'delete', ...options, 'workers-aa11', 'workers-b').out).toBe(
      'workers-bb33\n',
    );
    expect(complete('vm', 'ssh', ...options, '').out).toBe('k8s-db-1\n');
  });

  it('is silent when nothing can be read', () => {
    const folder = aFolder();
    const broken = join(folder, 'broken');
    writeFileSync(broken, '{');
    for (const words of [
      ['pool', 'scale', '--config', broken, ''],
      ['machine', 'show', '--state', broken, ''],
      ['machine', 'show', '--state', join(folder, 'missing'), ''],
      ['machine', 'show', ''],
    ]) {
      expect(complete(...words)).toEqual({ exitCode: 0, out: '', err: '' });
    }
  });
});
