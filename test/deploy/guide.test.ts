// SPDX-License-Identifier: Apache-2.0
// Checks the Cluster Autoscaler guide against the files, commands and options that it mentions.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../support/pvescaler.ts';
import { GUIDE, readCommands } from './guide.ts';
import { readManifest, readRepoFile, readYaml } from './manifests.ts';

const values = readYaml('deploy/cluster-autoscaler/values.yaml');
const volumes = readManifest('deploy/server/deployment.yaml', 'Deployment')['spec'].template.spec
  .volumes;

describe('the Cluster Autoscaler guide', () => {
  it('mentions only files that exist', () => {
    const named = GUIDE.match(/\bdeploy\/[\w./-]*\w/g) ?? [];
    const linked = [...GUIDE.matchAll(/\]\(([^)#:]+)\)/g)].map(
      ([, to = '']) => `docs/guides/${to}`,
    );
    expect(named.length).toBeGreaterThan(8);
    expect([...named, ...linked].filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it('creates the Secrets that the pods mount, with their keys', () => {
    const commands = [
      ...readCommands('3. The namespace and the Proxmox secret'),
      ...readCommands('With pvescaler certs'),
    ].filter((words) => words.includes('secret'));
    const secrets = Object.fromEntries(
      commands.map((words) => [
        words[words.indexOf('generic') + 1],
        words.flatMap((word) => /^--from-(?:file|literal)=([^=]+)=/.exec(word)?.[1] ?? []),
      ]),
    );
    const pair = ['tls.crt', 'tls.key', 'ca.crt'];
    expect(secrets).toEqual({
      'pvescaler-proxmox': ['secret', 'ca.crt'],
      'pvescaler-server-tls': pair,
      'cluster-autoscaler-client-tls': pair,
    });
    for (const { secret } of [...volumes, ...values.extraVolumes])
      if (secret !== undefined) expect(secrets).toHaveProperty([secret.secretName]);
  });

  it('explains every flag that values.yaml sets', () => {
    const isLogFlag = (flag: string) => ['logtostderr', 'stderrthreshold', 'v'].includes(flag);
    const flags = Object.keys(values.extraArgs).filter((flag) => !isLogFlag(flag));
    const rows = GUIDE.split('\n').filter((line) => line.startsWith('| `--'));
    for (const flag of flags) {
      const row = rows.find((line) => line.includes(`\`--${flag}\``));
      expect(row, flag).toBeDefined();
      if (flag !== 'cloud-config') expect(row).toContain(`\`${values.extraArgs[flag]}\``);
    }
  });

  it('installs the chart version of values.yaml', () => {
    const versions = [...GUIDE.matchAll(/--version (\S+)/g)].map(([, version]) => version);
    const comment = /--version (\S+)/.exec(
      readRepoFile('deploy/cluster-autoscaler/values.yaml'),
    )?.[1];
    expect(versions).toEqual([comment]);
  });

  it('uses the ports of the Service', () => {
    const { ports } = readManifest('deploy/server/service.yaml', 'Service')['spec'];
    const named = new Set(GUIDE.match(/(?<=pvescaler\.pvescaler\.svc:|[ /]:)5\d{4}/g));
    const served = ports.map(({ port }: { port: number }) => String(port));
    expect([...named].every((port) => served.includes(port))).toBe(true);
    expect(named.size).toBe(2);
  });

  it('creates the token of the server config', () => {
    const token = readCommands('User, rights and token').at(-1) ?? [];
    const { id } = readYaml('deploy/server/config.yaml').proxmox.dc1.token;
    expect(id).toBe(`${token[4]}!${token[5]}`);
  });

  it('uses only existing commands and options', () => {
    const reference = readRepoFile('docs/reference/cli.md').split(/^## /m);
    const invocation = /(?:(?<=^|`)pvescaler|pvescaler\.js) ((?:config )?[a-z]+)((?: --[a-z]+)*)/gm;
    const used = [...GUIDE.matchAll(invocation)];
    expect(used.length).toBeGreaterThan(5);
    for (const [, command = '', options = ''] of used) {
      const section = reference.find((text) => text.startsWith(`pvescaler ${command}\n`));
      expect(section, command).toBeDefined();
      for (const option of options.trim().split(' ')) expect(section).toContain(option);
    }
  });
});
