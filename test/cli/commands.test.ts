// SPDX-License-Identifier: Apache-2.0
// What holds for every command: examples that parse, help that fits 80 columns, and, if it prints objects, all formats.
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { buildProgram, EXAMPLES, FIRST_EXAMPLES, type ProgramHost } from '../../src/cli/index.ts';
import { aMachine, aMachineId, aPoolState } from '../../src/ports/fakes/sample-records.ts';
import { openSqliteStore } from '../../src/store/index.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { aKubernetesSim } from '../support/kubernetes-sim.ts';
import { aLab, start } from '../support/lab.ts';
import { pvescaler } from '../support/pvescaler.ts';

function aProgram(): Command {
  const context = { version: '', out: () => undefined, err: () => undefined };
  const host = { context, colors: { out: false, err: false }, begin: () => undefined };
  return buildProgram(host as unknown as ProgramHost);
}

interface Found {
  readonly path: string;
  readonly command: Command;
}

/** Commands that do something: those without subcommands, and `orphans`, which has both. */
function commandsOf(command: Command, parents: readonly string[] = []): readonly Found[] {
  const names = [...parents, command.name()];
  const path = names.join(' ');
  const children = command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== 'help');
  const below = children.flatMap((child) => commandsOf(child, names));
  const isRunnable = children.length === 0 || path === 'pvescaler orphans';
  return isRunnable ? [{ path, command }, ...below] : below;
}

const COMMANDS = commandsOf(aProgram());
const printsObjects = ({ command }: Found) =>
  command.options.some(({ long, argChoices }) => long === '--output' && argChoices !== undefined);

/** The words of the first call of pvescaler in a line for a shell. */
function wordsOf(example: string): readonly string[] {
  const call = /pvescaler ([^|>)]*)/.exec(example)?.[1] ?? '';
  return [...call.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');
}

describe('every command', () => {
  it('has examples, and no others do', () => {
    expect(Object.keys(EXAMPLES).toSorted()).toEqual(COMMANDS.map(({ path }) => path).toSorted());
  });

  it.each(COMMANDS.map(({ path }) => path))(
    '%s has a --help of 80 columns with examples',
    (path) => {
      const { exitCode, out, err } = pvescaler([...path.split(' ').slice(1), '--help']);
      expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' });
      expect(out).toContain(`\nExamples:\n  ${EXAMPLES[path]?.[0]}`);
      expect(out).toMatch(/\n +-q, --quiet .*\n +--no-color /);
      expect(out.split('\n').filter((line) => line.length > 80)).toEqual([]);
    },
  );

  it('is in the examples of its group', () => {
    const groups = aProgram().commands.filter(({ commands }) => commands.length > 0);
    for (const group of groups.filter((one) => one.name() !== 'orphans')) {
      const { out } = pvescaler([group.name(), '--help']);
      const paths = COMMANDS.filter(({ command }) => command.parent?.name() === group.name());
      const examples = paths.map(({ path }) => `  ${EXAMPLES[path]?.[0]}\n`);
      expect(out, group.name()).toContain(`\nExamples:\n${examples.join('')}`);
    }
    expect(pvescaler(['--help']).out).toContain(`\nExamples:\n  ${FIRST_EXAMPLES[0]}\n`);
  });

  it.each(Object.entries(EXAMPLES).flatMap(([path, lines]) => lines.map((line) => [line, path])))(
    'parses its example: %s',
    async (line, path) => {
      const program = aProgram();
      let ran = '';
      for (const found of commandsOf(program)) {
        found.command.action(() => {
          ran = found.path;
        });
      }
      await program.parseAsync([...wordsOf(line)], { from: 'user' });
      expect(ran).toBe(path);
    },
  );
});

/** Values that differ between two runs of a command. */
const VOLATILE = new Set(['at', 'since', 'until', 'snapshotDigest', 'detail', 'seconds', 'url']);

function stable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(stable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !VOLATILE.has(key))
      .map(([key, child]) => [key, stable(child)]),
  );
}

/** Epoch milliseconds of this century in fields of any name. */
function numbersLikeTimes(value: unknown): readonly number[] {
  if (typeof value === 'number')
    return value > 946_684_800_000 && value < 4_102_444_800_000 ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(numbersLikeTimes);
}

interface Run {
  readonly exitCode: number | null;
  readonly out: string;
  readonly err: string;
}

type RunFormat = (...args: readonly string[]) => Run | Promise<Run>;

/** Runs the command in each format; all must succeed in the same way. */
async function expectAllFormats(path: string, run: RunFormat, exitCode = 0): Promise<void> {
  const run1 = async (format: string) => {
    const result = await run('-o', format);
    expect(result.exitCode, `${path} -o ${format}: ${result.err}`).toBe(exitCode);
    return result.out;
  };
  const json = JSON.parse(await run1('json')) as unknown;
  expect(numbersLikeTimes(json), `${path} -o json: times are ISO`).toEqual([]);
  const yaml = parse(await run1('yaml')) as unknown;
  // The YAML is a config file with the origins as comments.
  if (path !== 'config show') expect(stable(yaml), path).toEqual(stable(json));
  const names = await run1('name');
  expect(names, `${path} -o name`).toMatch(/^(\S+\n)*$/);
  expect(await run1('table'), `${path} -o table`).toMatch(/\S/);
}

/** The simulated API runs in this process, so that it must not wait for the command. */
async function runAsync(args: readonly string[]): Promise<Run> {
  const child = start(args);
  const [out, err] = [child.stdout!, child.stderr!].map((stream) =>
    stream.setEncoding('utf8').toArray(),
  );
  const [exitCode] = (await once(child, 'exit')) as [number];
  return { exitCode, out: (await out!).join(''), err: (await err!).join('') };
}

const CONFIG = `
mode: standalone
cluster: { id: lab }
join:
  k3s: { server: "https://192.0.2.1:6443", install: none }
templates: { base: { id: 9000 } }
`;

const placement = (name: string, vmId: number) => ({
  region: 'lab',
  host: 'pve1',
  vmId,
  name,
  diskStorage: 'local-lvm',
  addresses: [],
});

/** One machine of a pool, one of a removed pool, one by hand; the first is kept as lost. VM 1299 belongs to somebody else. */
async function aSite() {
  const { kubeconfig } = await aKubernetesSim();
  const lab = await aLab({ join: 'k3s', config: CONFIG });
  await lab.request('POST', '/nodes/pve1/qemu?vmid=1299&name=foreign');
  mkdirSync(join(lab.folder, 'state'));
  const path = join(lab.folder, 'state/state.db');
  const store = await openSqliteStore({ path, clock: systemClock, random: systemRandom });
  const now = Date.now();
  const pools = ['workers', 'removed', 'role:db'];
  for (const [index, pool] of pools.entries()) {
    const id = aMachineId(index + 1);
    const name = ['workers-00000001', 'removed-00000002', 'k8s-db-1'][index] ?? '';
    const times = { phaseSince: now, requestedAt: now, phaseTimes: { ready: now } };
    const record = { id, pool, phase: 'ready', placement: placement(name, 1260 + index) } as const;
    await store.machines.create(id, aMachine({ ...record, ...times }));
    const subject = { pool, machine: id };
    const entry = { at: now, kind: 'did', reason: 'MachineReady', message: 'ready' } as const;
    await store.journal.append({ ...entry, subject });
  }
  const lost = { since: now, machines: [aMachineId(1)] };
  await store.pools.create('workers', aPoolState({ lost }));
  await store.close();
  const run = (...args: readonly string[]) => runAsync([...args, '--config', lab.path]);
  return { folder: lab.folder, path: lab.path, kubeconfig, run };
}

const SIM_LINES = {
  table: /, simulated: http/,
  json: /^\{"url":"http.*\}$/,
  yaml: /^---$/,
  name: /^(pve1|https:\S+)$/,
};

describe('every command that prints objects', () => {
  it('has -o table, json, yaml and name', () => {
    const found = COMMANDS.filter(printsObjects);
    expect(found.length).toBeGreaterThan(20);
    for (const { path, command } of found) {
      const option = command.options.find(({ long }) => long === '--output');
      expect(option?.argChoices, path).toEqual(['table', 'json', 'yaml', 'name']);
    }
  });

  it('prints each format', async () => {
    const lab = await aSite();
    const readers: Readonly<Record<string, readonly string[]>> = {
      pools: ['pools'],
      machines: ['machines'],
      'machine show': ['machine', 'show', 'workers-'],
      'vm create': ['vm', 'create', '--role', 'worker', '--from', 'image', '--dry-run'],
      'vm list': ['vm', 'list'],
      'vm show': ['vm', 'show', 'k8s-db'],
      'vm console': ['vm', 'console', 'k8s-db'],
      'template list': ['template', 'list'],
      'template show': ['template', 'show', 'base'],
      plan: ['plan', '--kubeconfig', lab.kubeconfig],
      explain: ['explain', 'pool', 'workers', '--kubeconfig', lab.kubeconfig],
      'config validate': ['config', 'validate'],
      'config show': ['config', 'show'],
      'state show': ['state', 'show'],
      'state journal': ['state', 'journal'],
      'pool confirm-lost': ['pool', 'confirm-lost', 'workers', '--dry-run'],
      'pool delete': ['pool', 'delete', 'removed'],
      'orphans adopt': ['orphans', 'adopt', '1299', '--pool', 'workers'],
      'orphans forget': ['orphans', 'forget', '1299'],
    };
    const others = ['doctor', 'replay', 'orphans', 'sim proxmox', 'sim kubernetes'];
    // They change what they print; print-objects.ts is the same.
    const changing = [
      'pool scale',
      'pool resume',
      'machine delete',
      'vm delete',
      'selftest',
      'template build',
      'template sync',
      'template delete',
      'state import',
    ];
    expect([...Object.keys(readers), ...others, ...changing].toSorted()).toEqual(
      COMMANDS.filter(printsObjects)
        .map(({ path }) => path.replace('pvescaler ', ''))
        .toSorted(),
    );
    for (const [path, args] of Object.entries(readers)) {
      await expectAllFormats(path, (...format) => lab.run(...args, ...format));
    }
    // There is no Kubernetes to check.
    await expectAllFormats('doctor', (...format) => lab.run('doctor', ...format), 2);
    await expectAllFormats('orphans', (...format) => lab.run('orphans', ...format), 4);
    for (const sim of ['proxmox', 'kubernetes']) {
      for (const [format, expected] of Object.entries(SIM_LINES)) {
        const child = start(['sim', sim, '--listen', '127.0.0.1:0', '-o', format]);
        const [line] = (await once(createInterface(child.stdout!), 'line')) as [string];
        expect(line, `sim ${sim} -o ${format}`).toMatch(expected);
        child.kill('SIGINT');
      }
    }
    const file = join(lab.folder, 'plan.json');
    await lab.run('plan', '--save', file, '--kubeconfig', lab.kubeconfig);
    await expectAllFormats('replay', (...format) => runAsync(['replay', file, ...format]));
  });
});
