// SPDX-License-Identifier: Apache-2.0
// Runs commands of the documentation as they are printed, in bash: those of the README on the simulated Proxmox VE, and the
// imports of the migration guide. The walkthroughs that need kubectl are in test/e2e.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { start } from '../support/lab.ts';
import { aFolder, COMMAND_TIMEOUT_MS, commandLine, root } from '../support/pvescaler.ts';
import { readDocument } from './documents.ts';

const FIXTURES = 'src/config/import/fixtures';

/** `npx pvescaler` and `pvescaler` are the built program. */
function bash(script: string, cwd: string) {
  const [program, args] = commandLine([]);
  const functions = 'pvescaler() { "$PROGRAM" $ARGS "$@"; }; npx() { "$@"; }; set -e';
  const { status, stdout, stderr } = spawnSync('bash', ['-c', `${functions}\n${script}`], {
    cwd,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: aFolder(), PROGRAM: program, ARGS: args.join(' ') },
    timeout: COMMAND_TIMEOUT_MS,
  });
  return { status, out: stdout, err: stderr };
}

function scriptsUnder(file: string, heading: string): readonly string[] {
  return readDocument(file)
    .blocks.filter((block) => block.heading === heading && block.language === 'sh')
    .map(({ text }) => text);
}

describe('README', () => {
  it('its commands create and delete machines on the simulated Proxmox VE', async () => {
    const [startSim = '', commands = ''] = scriptsUnder('README.md', 'Create machines yourself');
    const [, args = ''] = /^npx pvescaler (.*)\n$/.exec(startSim) ?? [];
    const fast = args.replace('--speed 10', '--speed 200');
    const sim = start([...fast.split(' '), '--listen', '127.0.0.1:0', '--json']);
    const [line] = (await once(createInterface(sim.stdout!), 'line')) as [string];
    const { origin } = new URL((JSON.parse(line) as { url: string }).url);

    const folder = aFolder();
    cpSync(join(root, 'examples/sim'), join(folder, 'examples/sim'), { recursive: true });
    const config = join(folder, 'examples/sim/machines.yaml');
    const text = readFileSync(config, 'utf8');
    expect(text).toContain('https://127.0.0.1:8006');
    writeFileSync(config, text.replace('https://127.0.0.1:8006', origin));

    const { status, out, err } = bash(commands, folder);
    expect(status, err).toBe(0);
    expect(out).toContain('pool workers has 3 machines');
    expect(out.match(/^workers-\S+ +workers +ready /gm)).toHaveLength(3);
    expect(out).toContain('no orphans');
    expect(out).toContain('pool workers has 0 machines');
  });
});

describe('the migration guide', () => {
  const guide = readDocument('docs/guides/migrating.md');

  it.each([
    ['ca-proxmox-externalgrpc', 'externalgrpc/full.yaml', 'provider-config.yaml'],
    ['proxmox-autoscaler', 'proxmox-autoscaler/settings.py', 'settings.py'],
    ['The VM creation plan', 'vm-plan/config.yaml', 'config.yaml'],
    ['KubeNodeSmith', 'kubenodesmith/scaler-config.yaml', 'scaler-config.yaml'],
  ])('%s: its command imports a file, and the result is valid', (heading, fixture, name) => {
    const folder = aFolder();
    cpSync(join(root, FIXTURES, fixture), join(folder, name));
    const [script = ''] = scriptsUnder(guide.file, heading);
    const imported = bash(script, folder);
    expect(imported.status, imported.err).toBe(0);
    expect(imported.err).toMatch(/^\d+ notes: /m);
    expect(bash('pvescaler config validate pvescaler.yaml', folder)).toMatchObject({ status: 0 });
  });

  it.each([
    ['ca-proxmox-externalgrpc', 'externalgrpc/full.yaml'],
    ['The VM creation plan', 'vm-plan/config.yaml'],
    ['KubeNodeSmith', 'kubenodesmith/scaler-config.yaml'],
  ])('%s: the table has every setting', (heading, fixture) => {
    const keys = leafKeys(parse(readFileSync(join(root, FIXTURES, fixture), 'utf8')));
    expect(keys.length).toBeGreaterThan(17);
    expect(keys.filter((key) => !isListed(heading, key))).toEqual([]);
  });

  it('proxmox-autoscaler: the table has every setting', () => {
    const text = readFileSync(join(root, FIXTURES, 'proxmox-autoscaler/settings.py'), 'utf8');
    const keys = new Set([...text.matchAll(/^ *(\w+) = /gm)].map(([, key = '']) => key));
    expect(keys.size).toBe(24);
    expect([...keys].filter((key) => !isListed('proxmox-autoscaler', key))).toEqual([]);
  });

  /** A row may shorten the names after its first: `limits.minNodes`, `maxNodes`. */
  function isListed(heading: string, key: string): boolean {
    const section = guide.text.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
    const parent = key.slice(0, key.lastIndexOf('.') + 1);
    const rows = section.split('\n').filter((line) => line.startsWith('| `'));
    return rows.some((row) => {
      const [, settings = ''] = row.split('|');
      const names = [...settings.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
      const [first = ''] = names;
      return (
        names.includes(key) ||
        (first.startsWith(parent) && names.includes(key.slice(parent.length)))
      );
    });
  }
});

/** `providers.NAME.options.vmOptions[]`: with entries of lists and freely named parts replaced. */
function leafKeys(value: unknown, path = ''): readonly string[] {
  const general = path
    .replace(/^(providers|vm_sizes)\.[^.]+/, '$1.NAME')
    .replace(/(\.labels|vmOptions\[\])\..*$/, '$1');
  if (Array.isArray(value) && value.every((one) => typeof one === 'object'))
    return unique(value.flatMap((one) => leafKeys(one, `${path}[]`)));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [general];
  const children = Object.entries(value).filter(([key]) => key !== 'bare-metal');
  return unique(
    children.flatMap(([key, child]) => leafKeys(child, path === '' ? key : `${path}.${key}`)),
  );
}

function unique(keys: readonly string[]): readonly string[] {
  return [...new Set(keys)];
}
