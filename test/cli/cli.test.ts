// SPDX-License-Identifier: Apache-2.0
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aFolder, pvescaler, root } from '../support/pvescaler.ts';

/** Every file that is loaded before a command runs: main.js and its static imports. */
function loadedAtStart(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const text = readFileSync(file, 'utf8');
  for (const [, path] of text.matchAll(/^(?:import|export)\b[^;'"]*?["'](\.[^"']+)["'];?$/gm)) {
    loadedAtStart(join(dirname(file), path ?? ''), seen);
  }
  return seen;
}

describe('pvescaler', () => {
  it('lists its commands in --help', () => {
    const { exitCode, out } = pvescaler(['--help']);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/Usage: pvescaler/);
    for (const command of ['serve', 'config', 'completion'])
      expect(out).toContain(`\n  ${command}`);
  });

  it('prints its version', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect(pvescaler(['--version'])).toEqual({ exitCode: 0, out: `${version}\n`, err: '' });
  });

  it('loads only the argument parser for --help', () => {
    const files = [...loadedAtStart(join(root, 'dist/main.js'))];
    const bytes = files.reduce((sum, file) => sum + readFileSync(file).byteLength, 0);
    expect(bytes).toBeLessThan(250_000);
  });

  it.each([
    [['bogus'], /^pvescaler: unknown command bogus\n/],
    [['confg'], /^pvescaler: unknown command confg; did you mean config\?\n/],
    [['config', 'validate', '--bogus'], /^pvescaler config validate: unknown option --bogus\n/],
    [
      ['pool', 'scale', 'workers', '--too', '3'],
      /^pvescaler pool scale: unknown option --too; did you mean --to\?\n {2}Run pvescaler pool scale --help for the options and examples\. \[USAGE\]\n$/,
    ],
    [
      ['pool', 'scale', 'workers', '--to', '3', '-o', 'xml'],
      /^pvescaler pool scale: option '-o, --output <format>' argument 'xml' is invalid\. Allowed choices are table, json, yaml, name\n/,
    ],
    [['pool', 'scal'], /^pvescaler pool: unknown command scal; did you mean scale\?\n/],
    [['machines', 'extra'], /^pvescaler machines: too many arguments\. Expected 0/],
    [['config', 'init', '-o', 'yaml'], /^pvescaler config init: .* Here it names a file/],
    [['sim', 'proxmox', '--speed', 'x'], /^pvescaler sim proxmox: --speed takes a number above 0/],
    [['sim', 'proxmox', '--listen', '8006'], /^pvescaler sim proxmox: .*not host:port/],
    [['sim', 'kubernetes', '--listen', '::1:70000'], /^pvescaler sim kubernetes: .*not host:port/],
    [['config', 'import', 'x.yaml'], /required option '--from <system>' not specified/],
    [
      ['config', 'import', '--from', 'nomad', 'x.yaml'],
      /Allowed choices are externalgrpc, proxmox-autoscaler, vm-plan, kubenodesmith/,
    ],
  ])('rejects %j with exit code 2', (args, message) => {
    const { exitCode, out, err } = pvescaler(args);
    expect(err).toMatch(message);
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' });
  });

  it('exits with 0 when the reader closes the pipe', async () => {
    const child = spawn(process.execPath, [join(root, 'bin/pvescaler.js'), 'config', 'schema']);
    await once(child.stdout, 'data');
    child.stdout.destroy();
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it.each([
    ['bash', /complete -o default -F _pvescaler/],
    ['zsh', /#compdef pvescaler/],
    ['fish', /complete -c pvescaler/],
  ])('prints a completion script for %s', (shell, expected) => {
    const { exitCode, out } = pvescaler(['completion', shell]);
    expect(exitCode).toBe(0);
    expect(out).toMatch(expected);
  });

  it.skipIf(spawnSync('bash', ['--version']).status !== 0)(
    'prints a completion script that bash accepts',
    () => {
      const { out } = pvescaler(['completion', 'bash']);
      expect(spawnSync('bash', ['-n'], { input: out, encoding: 'utf8' })).toMatchObject({
        status: 0,
        stderr: '',
      });
    },
  );

  it.each([
    [['config', ''], /^import\t.*\ninit\t/m],
    [['config', 'show', '--o'], /^--output\t/],
    [['config', 'show', '-o', 'y'], /^yaml\n$/],
    [['config', 'import', '--from', ''], /^externalgrpc\nkubenodesmith\n/],
    [['config', 'import', '--from', '=', 'v'], /^vm-plan\n$/],
    [['config', 'import', '--from=v'], /^vm-plan\n$/],
    [['serve', '--config', 'x.yaml', '--mode', 's'], /^standalone\n$/],
    [['completion', ''], /^bash\nfish\nzsh\n$/],
    [['sim', 'proxmox', '--version', '8'], /^8\.4\n$/],
    [['config', 'validate', ''], /^$/],
    [['serve', '--config', ''], /^$/],
    [['compl'], /^completion\t/],
    [[''], /^certs\t.*\ncompletion\t.*\nconfig\t/],
    [['nonsense', 'more', ''], /^$/],
  ])('completes %j', (words, expected) => {
    const { exitCode, out } = pvescaler(['complete', '--', ...words]);
    expect(exitCode).toBe(0);
    expect(out).toMatch(expected);
  });

  it.skipIf(spawnSync('bash', ['--version']).status !== 0)(
    'completes in bash when the script is loaded twice',
    () => {
      const script = [
        `pvescaler() { "${process.execPath}" "${join(root, 'bin/pvescaler.js')}" "$@"; }`,
        ...['', ''].map(() => 'eval "$(pvescaler completion bash)"'),
        'COMP_WORDS=(pvescaler config sh); COMP_CWORD=2; _pvescaler; echo "${COMPREPLY[@]}"',
        'COMP_WORDS=(pvescaler config import --from = k); COMP_CWORD=5; _pvescaler; echo "${COMPREPLY[@]}"',
      ].join('\n');
      expect(spawnSync('bash', ['-c', script], { encoding: 'utf8' })).toMatchObject({
        stdout: 'show\nkubenodesmith\n',
        stderr: '',
      });
    },
  );

  it('rejects an unknown shell', () => {
    expect(pvescaler(['completion', 'tcsh']).exitCode).toBe(2);
  });
});

describe('pvescaler serve', () => {
  it('rejects mode externalgrpc without TLS settings', () => {
    const folder = aFolder();
    pvescaler(['config', 'init', '-o', 'a.yaml'], { cwd: folder });
    const path = join(folder, 'a.yaml');
    const withoutTls = readFileSync(path, 'utf8').replace(/\n {2}tls:(.*\n {4}.*)+/, '');
    writeFileSync(path, withoutTls);
    const args = ['serve', '--config', 'a.yaml', '--mode', 'externalgrpc', '--state', 's.db'];
    const { exitCode, err } = pvescaler(args, { cwd: folder });
    expect(err).toMatch(/mode externalgrpc needs 'tls'/);
    expect(exitCode).toBe(3);
  });

  it('reports a missing config file by its path', () => {
    const { exitCode, err } = pvescaler(['serve', '--config', '/nonexistent/pvescaler.yaml']);
    expect(err).toMatch(
      /config file \/nonexistent\/pvescaler\.yaml named by --config does not exist/,
    );
    expect(exitCode).toBe(3);
  });
});
