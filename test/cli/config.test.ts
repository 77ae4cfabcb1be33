// SPDX-License-Identifier: Apache-2.0
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aFolder, pvescaler, root } from '../support/pvescaler.ts';

const SECRET = '7f3b9e52-0d4a-4c1e-9f8b-2a6c5d4e3f10';

function aConfig(change: (text: string) => string = (text) => text): {
  folder: string;
  file: string;
} {
  const folder = aFolder();
  const file = join(folder, 'pvescaler.yaml');
  const { out } = pvescaler(['config', 'init']);
  writeFileSync(file, change(out));
  return { folder, file };
}

function lineOf(file: string, needle: string): number {
  return (
    readFileSync(file, 'utf8')
      .split('\n')
      .findIndex((line) => line.includes(needle)) + 1
  );
}

describe('pvescaler config validate', () => {
  it('accepts the output of config init, short and full, in both modes', () => {
    for (const args of [
      [],
      ['--full'],
      ['--mode', 'externalgrpc'],
      ['--mode', 'externalgrpc', '--full'],
    ]) {
      const folder = aFolder();
      expect(pvescaler(['config', 'init', '-o', 'c.yaml', ...args], { cwd: folder }).exitCode).toBe(
        0,
      );
      expect(pvescaler(['config', 'validate', 'c.yaml'], { cwd: folder })).toMatchObject({
        exitCode: 0,
        out: 'valid: 1 pool in 1 region\n',
        err: '',
      });
    }
  });

  it.each(readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.yaml')))(
    'accepts examples/%s',
    (name) => {
      expect(pvescaler(['config', 'validate', join(root, 'examples', name)])).toMatchObject({
        exitCode: 0,
        err: expect.not.stringContaining('has no effect') as unknown,
      });
    },
  );

  it('accepts the example for the simulator, and warns about its insecure settings', () => {
    const { exitCode, err } = pvescaler([
      'config',
      'validate',
      join(root, 'examples/sim/machines.yaml'),
    ]);
    expect(exitCode).toBe(0);
    expect(err).toMatch(/tls\.insecure/);
  });

  it('lists all problems in one run, with file:line:col', () => {
    const { file } = aConfig((text) =>
      text
        .replace('limits: { min: 0', 'limit: { min: 0')
        .replace('memory: 4Gi', 'memory: 4GB')
        .replace('server: https', 'server: ftp')
        .concat('pools: []\n'),
    );
    const { exitCode, out, err } = pvescaler(['config', 'validate', file]);
    expect({ exitCode, out }).toEqual({ exitCode: 3, out: '' });
    const at = (needle: string) => `${file}:${lineOf(file, needle)}:`;
    expect(err).toContain(
      `${at('4GB')}29: error: sizes.medium.memory: unknown suffix 'GB'; did you mean 'G' or 'Gi'?`,
    );
    expect(err).toContain(
      `${at('limit:')}5: error: pools[0].limit: unknown key; did you mean 'limits'?`,
    );
    expect(err).toContain(`${at('server: ftp')}`);
    expect(err).toContain(`${at('pools: []')}1: error: key 'pools' is a duplicate`);
  });

  it('prints the same problems as JSON', () => {
    const { file } = aConfig((text) => text.replace('limits:', 'limit:'));
    const { exitCode, out } = pvescaler(['config', 'validate', '--json', file]);
    expect(exitCode).toBe(3);
    expect(JSON.parse(out)).toMatchObject({
      valid: false,
      problems: [
        {
          file,
          line: lineOf(file, 'limit:'),
          col: 5,
          path: 'pools[0].limit',
          severity: 'error',
          suggestion: 'limits',
        },
      ],
    });
  });

  it('reports a folder, a binary file or an unreadable file as an error', () => {
    const { folder, file } = aConfig();
    expect(pvescaler(['config', 'validate', folder])).toMatchObject({ exitCode: 3 });
    writeFileSync(file, Buffer.from([0, 255, 254, 1, 2, 3]));
    expect(pvescaler(['config', 'validate', file])).toMatchObject({ exitCode: 3 });
    writeFileSync(file, '');
    expect(pvescaler(['config', 'validate', file]).exitCode).toBeTypeOf('number');
  });
});

describe('the folder of the state database', () => {
  it('causes a warning when it is temporary, also for a relative path', () => {
    const { folder } = aConfig((text) => `${text}state: { path: state.db }\n`);
    const { exitCode, err } = pvescaler(['config', 'validate', 'pvescaler.yaml'], { cwd: folder });
    expect(exitCode).toBe(0);
    expect(err).toMatch(/pvescaler\.yaml:\d+:\d+: warning: state\.path: .* may be emptied/);
  });
});

describe('pvescaler config show', () => {
  it('prefers flag, then variable, then file, then default, and prints the origin', () => {
    const { file } = aConfig((text) => `${text}state: { path: /var/lib/from-file.db }\n`);
    const show = (args: readonly string[], env: Record<string, string>) =>
      JSON.parse(pvescaler(['config', 'show', '--json', file, ...args], { env }).out)['state.path'];
    const line = lineOf(file, 'from-file');
    expect(show([], {})).toEqual({
      value: '/var/lib/from-file.db',
      origin: { kind: 'file', detail: `${file}:${line}:16` },
    });
    const env = { PROVIDER_STATE_DB: '/var/lib/from-env.db' };
    expect(show([], env)).toEqual({
      value: '/var/lib/from-env.db',
      origin: { kind: 'environment', detail: 'PROVIDER_STATE_DB' },
    });
    expect(show(['--state', '/var/lib/from-flag.db'], env)).toEqual({
      value: '/var/lib/from-flag.db',
      origin: { kind: 'flag', detail: '--state' },
    });
    const shown = JSON.parse(pvescaler(['config', 'show', '--json', file]).out);
    expect(shown['intervals.reconcile']).toEqual({
      value: '20s',
      origin: { kind: 'default', detail: '' },
    });
  });

  it('prints the origin of a secret from the environment, never its value', () => {
    const { file } = aConfig();
    const env = {
      PM_SERVICE_TOKEN_SECRET: SECRET,
      K3S_CLUSTER_TOKEN: SECRET,
      PROXMOX_SECRET: SECRET,
    };
    for (const args of [['show'], ['show', '--json'], ['validate'], ['validate', '--json']]) {
      const { out, err } = pvescaler(['config', ...args, file], { env });
      expect(out + err).not.toContain(SECRET);
    }
    expect(pvescaler(['config', 'show', file], { env }).out).toContain('PM_SERVICE_TOKEN_SECRET');
  });

  it('rejects a secret in the file without printing it', () => {
    const { file } = aConfig((text) =>
      text.replace('secretFile: /etc/pvescaler/token', `secret: "${SECRET}"`),
    );
    for (const command of ['validate', 'show']) {
      const { exitCode, out, err } = pvescaler(['config', command, file]);
      expect(exitCode).toBe(3);
      expect(out + err).not.toContain(SECRET);
      expect(err).toMatch(/secretFile/);
    }
  });
});

describe('pvescaler config init', () => {
  it('overwrites a file only with --force', () => {
    const { folder, file } = aConfig(() => 'mine\n');
    const refused = pvescaler(['config', 'init', '-o', 'pvescaler.yaml'], { cwd: folder });
    expect(refused).toMatchObject({ exitCode: 5, out: '' });
    expect(refused.err).toMatch(/pvescaler\.yaml already exists[\s\S]*--force/);
    expect(readFileSync(file, 'utf8')).toBe('mine\n');
    expect(
      pvescaler(['config', 'init', '-o', 'pvescaler.yaml', '--force'], { cwd: folder }).exitCode,
    ).toBe(0);
    expect(readFileSync(file, 'utf8')).toContain('apiVersion: pvescaler.dev/v1alpha1');
  });

  it('writes files that only their owner can read', () => {
    const folder = aFolder();
    chmodSync(folder, 0o700);
    pvescaler(['config', 'init', '-o', 'new/deep.yaml'], { cwd: folder });
    expect(statSync(join(folder, 'new/deep.yaml')).mode & 0o777).toBe(0o600);
  });
});

describe('pvescaler config schema', () => {
  it('prints JSON with the definition of a pool', () => {
    const { exitCode, out } = pvescaler(['config', 'schema']);
    expect(exitCode).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      type: 'object',
      properties: { pools: expect.anything() },
    });
  });
});

describe('pvescaler config import', () => {
  const fixtures = join(root, 'src/config/import/fixtures');

  it.each([
    ['externalgrpc', 'externalgrpc/full.yaml'],
    ['proxmox-autoscaler', 'proxmox-autoscaler/settings.py'],
    ['vm-plan', 'vm-plan/config.yaml'],
    ['kubenodesmith', 'kubenodesmith/scaler-config.yaml'],
  ])('turns a file of %s into one that is valid here', (system, file) => {
    const folder = aFolder();
    const imported = pvescaler(
      ['config', 'import', '--from', system, join(fixtures, file), '-o', 'ours.yaml'],
      { cwd: folder },
    );
    expect(imported.exitCode).toBe(0);
    expect(imported.err).toMatch(/\d+ notes:/);
    expect(pvescaler(['config', 'validate', 'ours.yaml'], { cwd: folder })).toMatchObject({
      exitCode: 0,
    });
  });

  it('recognises a file of another system than --from', () => {
    const { exitCode, err } = pvescaler([
      'config',
      'import',
      '--from',
      'externalgrpc',
      join(fixtures, 'kubenodesmith/scaler-config.yaml'),
    ]);
    expect(exitCode).toBe(3);
    expect(err).toMatch(/--from kubenodesmith/);
  });

  it('prints config and notes to separate streams, or together as JSON', () => {
    const args = [
      'config',
      'import',
      '--from',
      'externalgrpc',
      join(fixtures, 'externalgrpc/full.yaml'),
    ];
    const plain = pvescaler(args);
    expect(plain.out).toMatch(/^pools:$/m);
    expect(plain.out).not.toMatch(/action-required/);
    const json = JSON.parse(pvescaler([...args, '--json']).out);
    expect(json).toMatchObject({
      ok: true,
      yaml: plain.out,
      counts: { 'action-required': expect.any(Number) },
    });
  });

  it('reports a missing file by its path', () => {
    const { exitCode, err } = pvescaler([
      'config',
      'import',
      '--from',
      'vm-plan',
      '/nonexistent.yaml',
    ]);
    expect(exitCode).toBe(3);
    expect(err).toMatch(/cannot read \/nonexistent\.yaml/);
  });
});
