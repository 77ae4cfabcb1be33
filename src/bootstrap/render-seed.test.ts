// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { renderSeed } from './render-seed.ts';
import type { JoinInput, SeedInput } from './seed-input.ts';
import {
  aCustomJoin,
  aK3sJoin,
  aKubeadmJoin,
  aNetwork,
  anRke2Join,
  aSeedInput,
  noJoin,
  unwrap,
} from './testing/a-seed.ts';

const proxy = { http: 'http://u:p@proxy:3128', https: undefined, none: ['.lan'] };
const GOLDEN: Readonly<Record<string, SeedInput>> = {
  k3s: aSeedInput(),
  rke2: aSeedInput({ join: anRke2Join({ sha256: undefined }) }),
  kubeadm: aSeedInput({ join: aKubeadmJoin({ proxy }) }),
  'kubeadm-agent': aSeedInput({ join: aKubeadmJoin({ via: 'agent' }) }),
  custom: aSeedInput({ join: aCustomJoin() }),
};

interface UserData {
  readonly write_files: readonly {
    readonly path: string;
    readonly content: string;
    readonly permissions: string;
  }[];
  readonly [key: string]: unknown;
}

function userData(input: SeedInput): UserData {
  return parse(unwrap(renderSeed(input)).userData, { version: '1.1' });
}

describe('renderSeed', () => {
  it.each(Object.entries(GOLDEN))('renders exactly the golden file of %s', async (name, input) => {
    const seed = unwrap(renderSeed(input));
    await expect(seed.userData).toMatchFileSnapshot(`testing/golden/${name}.yaml`);
    expect(unwrap(renderSeed(input))).toEqual(seed);
  });

  it("writes the machine's name to meta-data", () => {
    expect(unwrap(renderSeed(aSeedInput())).metaData).toBe(
      'instance-id: "7c9e6679-7425-40de-944b-e07fc1f90ae7"\nlocal-hostname: worker-7c9e6679\n',
    );
  });

  it('writes secrets only to files that root alone can read', () => {
    const hex = fc.stringMatching(/^[a-z0-9]{16}$/);
    const joins = hex.chain((secret) =>
      fc.constantFrom<readonly [string, JoinInput]>(
        [secret, aK3sJoin({ token: `K10x::${secret}`, proxy })],
        [secret, aK3sJoin({ token: secret, install: 'script' })],
        [secret, anRke2Join({ token: secret })],
        [secret, aKubeadmJoin({ token: `abcdef.${secret}` })],
        [secret, aCustomJoin({ token: secret })],
      ),
    );
    fc.assert(
      fc.property(joins, fc.constantFrom('cloud-init', 'agent'), ([secret, join], via) => {
        const input = aSeedInput({ join: { ...join, via } as JoinInput });
        const seed = unwrap(renderSeed(input));
        const { write_files: files, ...rest } = userData(input);
        expect(JSON.stringify([rest, seed.metaData, seed.networkConfig])).not.toContain(secret);
        const holders = files.filter(({ content }) => content.includes(secret));
        expect(holders.length > 0).toBe(via === 'cloud-init');
        expect(holders.every(({ permissions }) => permissions === '0600')).toBe(true);
        const script = [
          ...files,
          ...seed.agentSteps.map((step) => ({
            path: step.name,
            content: (step.kind === 'run' && step.input) || '',
          })),
        ].find(({ path }) => path.endsWith('/usr/local/sbin/pvescaler-join'));
        for (const { path } of holders) {
          const isRemoved = script?.content.includes(`rm -f ${path}\n`);
          const isReplaced = script?.content.includes(`mv -f ${path}.new ${path}\n`);
          expect(isRemoved || isReplaced).toBe(true);
        }
        for (const { command } of seed.agentSteps) expect(command.join(' ')).not.toContain(secret);
      }),
    );
  });

  it('parses back to the same names, keys, packages and files', () => {
    const text = fc.string({ unit: 'binary' });
    const name = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z0-9]{1,9})?$/);
    fc.assert(
      fc.property(name, text, name, (machineName, content, word) => {
        const { machine } = aSeedInput();
        const input = aSeedInput({
          machine: { ...machine, name: machineName },
          login: { user: 'ops', publicKeys: [`ssh-ed25519 AAAA ${word}: "x" # y`] },
          join: noJoin({
            packages: [word],
            files: [{ path: `/etc/${word}`, content, permissions: '0600' }],
          }),
        });
        const seed = unwrap(renderSeed(input));
        expect(parse(seed.metaData, { version: '1.1' })['local-hostname']).toBe(machineName);
        const parsed = userData(input);
        expect(parsed['packages']).toContain(word);
        expect(parsed['users']).toMatchObject([{ ssh_authorized_keys: input.login.publicKeys }]);
        const fullName = machineName.includes('.') ? machineName : undefined;
        expect(parsed).toMatchObject(
          fullName === undefined ? {} : { hostname: fullName, fqdn: fullName },
        );
        const [file] = parsed.write_files;
        const isEncoded = file !== undefined && 'encoding' in file;
        const written = isEncoded ? Buffer.from(file.content, 'base64').toString() : file?.content;
        expect(written).toBe(content);
      }),
    );
  });

  it('installs no packages of its own if the image has them', () => {
    const join = aK3sJoin({ packages: ['htop'] });
    expect(userData(aSeedInput({ preinstalled: true, join }))['packages']).toEqual(['htop']);
    const bare = userData(aSeedInput({ preinstalled: true }));
    expect(bare).not.toHaveProperty('packages');
    expect(bare).not.toHaveProperty('package_update');
    expect(userData(aSeedInput({ join }))['packages']).toEqual([
      'qemu-guest-agent',
      'curl',
      'ca-certificates',
      'htop',
    ]);
  });

  it('allows root login if the user is root, and no login without a key', () => {
    const root = userData(aSeedInput({ login: { user: 'root', publicKeys: ['ssh-rsa AAAA'] } }));
    expect(root).toMatchObject({ disable_root: false, users: [{ name: 'root' }] });
    expect(userData(aSeedInput({ login: { user: 'ops', publicKeys: [] } }))).not.toHaveProperty(
      'users',
    );
  });

  it('keeps the password of a proxy in files that root alone can read', () => {
    const http = 'http://user:secret@proxy.example:3128';
    for (const proxied of [
      { http, none: [] },
      { https: http, none: [] },
    ]) {
      const { write_files: files, ...rest } = userData(
        aSeedInput({ join: aK3sJoin({ proxy: proxied }) }),
      );
      expect(JSON.stringify(rest)).not.toContain('secret');
      const holders = files.filter(({ content }) => content.includes('secret'));
      expect(holders.map(({ path }) => path)).toContain('/etc/apt/apt.conf.d/90pvescaler-proxy');
      expect(holders.every(({ permissions }) => permissions === '0600')).toBe(true);
    }
  });

  it('configures the proxy for apt, the join and the services of the recipe', () => {
    const { apt, write_files: files } = userData(GOLDEN['kubeadm'] ?? aSeedInput());
    expect(apt).toBeUndefined();
    const own = files.find(({ path }) => path === '/etc/apt/apt.conf.d/90pvescaler-proxy');
    expect(own?.content).toBe(`Acquire::http::Proxy "${proxy.http}";\n`);
    const env = files.find(({ path }) => path === '/etc/pvescaler/proxy.env');
    expect(env?.permissions).toBe('0600');
    expect(env?.content).toContain('NO_PROXY="localhost,127.0.0.0/8,::1,10.0.0.2,.lan"\n');
    expect(env?.content).not.toContain('HTTPS_PROXY');
    expect(files.map(({ path }) => path)).toContain(
      '/etc/systemd/system/containerd.service.d/50-pvescaler-proxy.conf',
    );
    const https = { https: 'http://p:1', none: [] };
    expect(userData(aSeedInput({ join: noJoin({ proxy: https }) }))['apt']).toEqual({
      https_proxy: 'http://p:1',
    });
    expect(userData(aSeedInput({ join: noJoin({ proxy: { none: [] } }) }))).not.toHaveProperty(
      'apt',
    );
  });

  const { machine } = aSeedInput();
  const file = { path: '/etc/a', content: '', permissions: '0644' };
  it.each<[string, Partial<SeedInput>]>([
    ["machine name 'A' must be", { machine: { ...machine, name: 'A' } }],
    ['is longer than 64 characters', { machine: { ...machine, name: 'a'.repeat(65) } }],
    ['99 is not a VM id', { machine: { ...machine, vmId: 99 } }],
    ["'a/b' is not a region", { machine: { ...machine, region: 'a/b' } }],
    ["'Ops' is not a user name", { login: { user: 'Ops', publicKeys: [] } }],
    [
      'an SSH public key must be',
      { login: { user: 'ops', publicKeys: ['ssh-rsa AAAA\nssh-rsa B'] } },
    ],
    ['an SSH public key must be', { login: { user: 'ops', publicKeys: [''] } }],
    ['no network interface', { network: aNetwork({ interfaces: [] }) }],
    ["'a b' is not a package name", { join: noJoin({ packages: ['a b'] }) }],
    ["'-y' is not a package name", { join: noJoin({ packages: ['-y'] }) }],
    ["'etc' is not an absolute path", { join: noJoin({ files: [{ ...file, path: 'etc' }] }) }],
    ['is not an absolute path', { join: noJoin({ files: [{ ...file, path: '/a/../b' }] }) }],
    ['is not an absolute path', { join: noJoin({ files: [{ ...file, path: '/a\nb' }] }) }],
    ["'rw' is not an octal mode", { join: noJoin({ files: [{ ...file, permissions: 'rw' }] }) }],
    ['contains invalid Unicode', { join: noJoin({ files: [{ ...file, content: '\ud800' }] }) }],
    ["two files have the path '/etc/a'", { join: noJoin({ files: [file, file] }) }],
    [
      "two files have the path '/var/lib/pvescaler/join-token'",
      {
        join: aK3sJoin({
          via: 'agent',
          files: [{ ...file, path: '/var/lib/pvescaler/join-token' }],
        }),
      },
    ],
    ['the proxy URL', { join: noJoin({ proxy: { http: 'proxy', none: [] } }) }],
    ['the proxy URL', { join: noJoin({ proxy: { http: 'http://p"x', none: [] } }) }],
    ["'a b' is not a valid no-proxy entry", { join: noJoin({ proxy: { none: ['a b'] } }) }],
    ['the join token is empty', { join: aK3sJoin({ token: '' }) }],
    ["must start with the line '#cloud-config'", { join: noJoin({ cloudConfig: 'a: b' }) }],
    [
      "write_files contains '/var/lib/pvescaler/join-token'",
      {
        join: aCustomJoin({
          via: 'agent',
          cloudConfig: '#cloud-config\nwrite_files: [{path: /var/lib/pvescaler/join-token}]\n',
        }),
      },
    ],
    [
      "exceeds the guest agent's limit",
      { join: aCustomJoin({ via: 'agent', script: `#!/bin/sh\n${'#'.repeat(70_000)}` }) },
    ],
    ['key', { pool: { ...aSeedInput().pool, labels: { 'a b': '' } } }],
  ])('refuses: %s', (problem, overrides) => {
    const refusal = renderSeed(aSeedInput(overrides));
    expect(refusal).toEqual({ ok: false, problem: expect.stringContaining(problem) });
  });

  it('accepts file modes in all common forms', () => {
    for (const [permissions, mode] of [
      ['644', '0644'],
      ['0644', '0644'],
      ['1777', '1777'],
      ['04755', '4755'],
    ]) {
      const join = noJoin({ files: [{ ...file, permissions: permissions ?? '' }] });
      expect(userData(aSeedInput({ join })).write_files[0]?.permissions).toBe(mode);
    }
  });
});
