// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { aLab } from '../support/lab.ts';

interface Report {
  readonly status: string;
  readonly checks: readonly {
    readonly name: string;
    readonly status: string;
    readonly fix?: string;
  }[];
}

it('doctor exits with 0, 1 or 2, prints JSON, and prints the fingerprint to pin', async () => {
  const lab = await aLab();
  const fine = lab.run('doctor');
  expect(fine.out).toMatch(/\nregion lab, host pve2\n {2}ok /);
  expect(fine.out).toMatch(/\n\d+ checks, 0 failed, 0 with warnings\n$/);
  expect([fine.exitCode, fine.err]).toEqual([0, '']);

  const config = readFileSync(lab.path, 'utf8');
  writeFileSync(lab.path, config.replace('seeds: seeds', 'seeds: local'));
  const warned = lab.run('doctor', '-o', 'json');
  expect(warned.exitCode).toBe(1);
  expect(JSON.parse(warned.out)).toMatchObject({ status: 'warning' });

  const [, fingerprint = ''] = /fingerprints: (\["[0-9A-F:]+"\])/.exec(config) ?? [];
  writeFileSync(lab.path, config.replace(/ *tls: .*\n/, ''));
  const failed = lab.run('doctor', '-o', 'json');
  expect(failed.exitCode).toBe(2);
  const { checks } = JSON.parse(failed.out) as Report;
  const tls = checks.find(({ name }) => name === 'tls');
  expect(tls?.fix?.split('\n').at(-1)).toBe(`fingerprints: ${fingerprint}`);
});

it('config validate --online runs the checks that need no Kubernetes', async () => {
  const lab = await aLab({ config: 'cluster: { kubeconfig: /nonexistent }\n' });
  const online = lab.run('config', 'validate', '--online');
  expect(online.out).toMatch(/^valid: 1 pool in 1 region\n/);
  expect(online.out).toContain('region lab, host pve1\n');
  expect(online.out).not.toContain('Kubernetes\n');
  expect(online.out).toContain('FAILURE  file cluster.kubeconfig');
  expect(online.exitCode).toBe(2);
  const json = lab.run('config', 'validate', '--online', '--json');
  const { online: checks } = JSON.parse(json.out) as { readonly online: Report['checks'] };
  expect(checks.some(({ name }) => name === 'privileges')).toBe(true);
});
