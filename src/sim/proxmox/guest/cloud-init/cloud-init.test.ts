// SPDX-License-Identifier: Apache-2.0
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aGuest, aSeed, bootWith } from '../testing/a-guest.ts';
import { aShell } from '../testing/a-shell.ts';
import { CloudInit } from './cloud-init.ts';
import { readUserData } from './user-data.ts';

const HOME = ['', 'home', 'ubuntu'].join('/');
const KEY = 'ssh-ed25519 AAAA me@example';

async function reportOf(userData: string) {
  return (await bootWith(userData)).guest.report();
}

describe('hostname', () => {
  it.each([
    ['', 'worker-1'],
    ['hostname: named', 'named'],
    ['fqdn: named.lab.example', 'named'],
    ['hostname: short\nfqdn: other.lab.example', 'short'],
    ['fqdn: named.lab.example\nprefer_fqdn_over_hostname: true', 'named.lab.example'],
    ['hostname: named\npreserve_hostname: true', 'ubuntu'],
  ])('%j gives %s', async (config, expected) => {
    expect((await reportOf(`#cloud-config\n${config}\n`)).hostname).toBe(expected);
  });

  it('manages /etc/hosts when asked to', async () => {
    const report = await reportOf('#cloud-config\nfqdn: a.lab\nmanage_etc_hosts: true\n');
    expect(report.files['/etc/hosts']?.content).toBe('127.0.1.1 a.lab a\n127.0.0.1 localhost\n');
    expect((await reportOf('#cloud-config\nfqdn: a.lab\n')).files['/etc/hosts']).toBeUndefined();
  });
});

describe('users', () => {
  it('gives the keys to the default user', async () => {
    const report = await reportOf(`#cloud-config\nssh_authorized_keys: ["${KEY}"]\n`);
    expect(report.users.map((user) => user.name)).toEqual(['root', 'ubuntu']);
    expect(report.users[1]).toMatchObject({ authorizedKeys: [KEY], lockPassword: true });
    expect(report.files[`${HOME}/.ssh/authorized_keys`]).toEqual({
      content: `${KEY}\n`,
      encoding: 'utf8',
      mode: '0600',
      owner: 'ubuntu:ubuntu',
    });
  });

  it('makes those that are listed, and the default one only when listed', async () => {
    const report = await reportOf(`#cloud-config
users:
  - name: ops
    groups: [adm, docker]
    sudo: ALL=(ALL) NOPASSWD:ALL
    shell: /bin/bash
    lock_passwd: false
    passwd: $6$hash
    ssh_authorized_keys: ["${KEY}"]
  - {name: two, groups: "a, b", sudo: false}
  - bare
  - {gecos: nameless}
  - 7
`);
    expect(report.users.slice(1)).toEqual([
      {
        name: 'ops',
        groups: ['adm', 'docker'],
        sudo: ['ALL=(ALL) NOPASSWD:ALL'],
        shell: '/bin/bash',
        lockPassword: false,
        passwordHash: '$6$hash',
        authorizedKeys: [KEY],
      },
      {
        name: 'two',
        groups: ['a', 'b'],
        sudo: [],
        shell: '/bin/sh',
        lockPassword: true,
        authorizedKeys: [],
      },
      {
        name: 'bare',
        groups: [],
        sudo: [],
        shell: '/bin/sh',
        lockPassword: true,
        authorizedKeys: [],
      },
    ]);
    expect(report.warnings).toEqual([
      'users: an entry without a name',
      'users: an entry that is neither a name nor a mapping',
    ]);
  });

  it('renames the default user', async () => {
    const report = await reportOf('#cloud-config\nuser: admin\npassword: $5$x\nusers: [default]\n');
    expect(report.users[1]).toMatchObject({
      name: 'admin',
      passwordHash: '$5$x',
      lockPassword: false,
    });
  });
});

describe('write_files', () => {
  it('decodes, sets modes and owners, appends, and defers', async () => {
    const gz = gzipSync('zipped\n').toString('base64');
    const report = await reportOf(`#cloud-config
write_files:
  - {path: /etc/new/dir/plain, content: "a\\n"}
  - {path: /etc/b64, encoding: b64, content: ${Buffer.from('b\n').toString('base64')}, permissions: "0600"}
  - {path: /etc/gz, encoding: gz+b64, content: ${gz}, permissions: 0750}
  - {path: /etc/raw, encoding: base64, content: /w==}
  - {path: /etc/new/dir/plain, content: "more\\n", append: true}
  - {path: ${HOME}/late, content: x, owner: "ubuntu:ubuntu", defer: true}
`);
    const file = (path: string) => report.files[path];
    expect(report.errors).toEqual([]);
    expect(file('/etc/new/dir/plain')).toMatchObject({
      content: 'a\nmore\n',
      mode: '0644',
      owner: 'root:root',
    });
    expect(file('/etc/b64')).toMatchObject({ content: 'b\n', mode: '0600' });
    expect(file('/etc/gz')).toMatchObject({ content: 'zipped\n', mode: '0750' });
    expect(file('/etc/raw')).toMatchObject({ content: '/w==', encoding: 'base64' });
    expect(file(`${HOME}/late`)).toMatchObject({ owner: 'ubuntu:ubuntu' });
  });

  it.each([
    ['{path: /etc/x, content: x, owner: "ubuntu:ubuntu"}', 'unknown user or group: ubuntu:ubuntu'],
    ['{path: /etc/x, content: "###", encoding: b64}', 'the content cannot be decoded'],
    ['{path: /etc/x, content: eHg=, encoding: gz+b64}', 'the content cannot be decoded'],
  ])('stops at %s', async (entry, problem) => {
    const report = await reportOf(
      `#cloud-config\nwrite_files: [{content: n}, ${entry}, {path: /etc/after, content: a}]\n`,
    );
    expect(report.errors).toEqual([`write_files: /etc/x: ${problem}`]);
    expect(report.warnings).toEqual(['write_files: an entry without a path']);
    expect(report.files['/etc/after']).toBeUndefined();
  });

  it('falls back to 0644 for permissions that it cannot read', async () => {
    const report = await reportOf(
      '#cloud-config\nwrite_files: [{path: /etc/x, permissions: rw}]\n',
    );
    expect(report.files['/etc/x']?.mode).toBe('0644');
    expect(report.warnings).toHaveLength(1);
  });
});

describe('commands and packages', () => {
  it('runs in order: bootcmd, packages, late files, runcmd', async () => {
    const report = await reportOf(`#cloud-config
packages: [jq, [containerd, 1.7], qemu-guest-agent]
package_upgrade: true
bootcmd: [echo boot >> /var/log/order]
runcmd:
  - echo "run $(cat /etc/late)" >> /var/log/order
  - [sh, -c, 'echo "it''s" >> /var/log/order']
  - cd /etc/cloud
  - pwd=$PWD
  - echo $pwd >> /var/log/order
write_files: [{path: /etc/late, content: late, defer: true}]
`);
    expect(report.files['/var/log/order']?.content).toBe("boot\nrun late\nit's\n/etc/cloud\n");
    expect(report.packages).toEqual(
      expect.arrayContaining(['jq', 'containerd', 'qemu-guest-agent']),
    );
    expect(report.commandsRun.map(({ source, exitCode }) => `${source} ${exitCode}`)).toEqual([
      'bootcmd 0',
      'packages 0',
      'packages 0',
      'packages 0',
      'runcmd 0',
      'runcmd 0',
      'runcmd 0',
      'runcmd 0',
      'runcmd 0',
    ]);
    expect(report.errors).toEqual([]);
  });

  it('goes on after a failure, and calls the script failed when its last command is', async () => {
    const going = await reportOf('#cloud-config\nruncmd: ["false", "touch /run/on"]\n');
    expect(going.files['/run/on']).toBeDefined();
    expect(going.errors).toEqual([]);
    expect(going.warnings).toEqual(['runcmd: exit code 1: false']);
    const failed = await reportOf('#cloud-config\nruncmd: [frobnicate]\n');
    expect(failed.errors).toEqual([
      'sh: frobnicate: not found',
      'runcmd: the script ended with exit code 127',
    ]);
    const ended = await reportOf('#cloud-config\nruncmd: ["exit 3", "touch /run/on"]\n');
    expect(ended.files['/run/on']).toBeUndefined();
  });

  it('runs nothing when an entry is no command', async () => {
    const report = await reportOf('#cloud-config\nruncmd: ["touch /run/on", {a: b}]\n');
    expect(report.files['/run/on']).toBeUndefined();
    expect(report.errors).toEqual(['runcmd: an entry is neither a text nor a list: none was run']);
  });

  it('runs a user script, and keeps what everything printed', async () => {
    const report = await reportOf('#!/bin/bash\necho from-script\nexit 4\n');
    expect(report.files['/var/log/cloud-init-output.log']?.content).toBe('from-script\n');
    expect(report.errors).toEqual(['user script: exit code 4']);
  });

  it('makes swap, and powers off or reboots when told to', async () => {
    expect((await reportOf('#cloud-config\nswap: {filename: /swap.img, size: 1G}\n')).swapOn).toBe(
      true,
    );
    expect((await reportOf('#cloud-config\nswap: {size: 0}\n')).swapOn).toBe(false);
    const off = await bootWith('#cloud-config\npower_state: {mode: poweroff, delay: "+1"}\n');
    expect(off.guest.poweredOff).toBe(true);
    const rebooted = await bootWith('#cloud-config\npower_state: {mode: reboot}\n');
    expect(rebooted.guest.report()).toMatchObject({ boots: 2, phase: 'running' });
    const stays = await bootWith(
      '#cloud-config\npower_state: {mode: poweroff, condition: false}\n',
    );
    expect(stays.guest.report().phase).toBe('running');
  });
});

describe('user-data', () => {
  it('warns about keys that no module reads, and about data that is none', async () => {
    expect((await reportOf('#cloud-config\nruncmds: []\nntp: {}\n')).warnings).toEqual([
      "cloud-config: unknown key 'runcmds'",
    ]);
    expect((await reportOf('hostname: x\n')).warnings).toEqual([
      "user-data: unhandled, it starts with 'hostname: x'",
    ]);
    expect((await reportOf('#cloud-config\na: [\n')).warnings[0]).toContain('user-data: not YAML');
    expect((await reportOf('#cloud-config\n- a\n')).warnings).toEqual([
      'user-data: the cloud-config is not a mapping',
    ]);
    expect((await reportOf('#include\nhttps://example.org\n')).warnings).toHaveLength(1);
    expect(
      (await reportOf('## template: jinja\n#cloud-config\nhostname: {{ x }}\n')).warnings,
    ).toHaveLength(1);
    expect((await reportOf('## template: jinja\n#cloud-config\nhostname: x\n')).hostname).toBe('x');
  });

  it('reads a MIME archive; the later part wins', async () => {
    const script = Buffer.from('#!/bin/sh\ntouch /run/script\n').toString('base64');
    const report = await reportOf(`Content-Type: multipart/mixed;
 boundary="=b="
MIME-Version: 1.0

--=b=
Content-Type: text/cloud-config

hostname: first
runcmd: [touch /run/first]
--=b=
Content-Type: text/x-shellscript
Content-Transfer-Encoding: base64

${script}
--=b=
Content-Type: text/cloud-boothook

touch /run/hook
--=b=

#cloud-config
hostname: second
--=b=--
trailer`);
    expect(report.hostname).toBe('second');
    expect(Object.keys(report.files)).toEqual(
      expect.arrayContaining(['/run/first', '/run/script', '/run/hook']),
    );
    expect(readUserData(new TextEncoder().encode('MIME-Version: 1.0\n\nx')).warnings).toEqual([
      'user-data: multipart without a boundary',
    ]);
  });

  it('reads compressed data', () => {
    expect(readUserData(gzipSync('#cloud-config\nhostname: z\n')).config).toEqual({
      hostname: 'z',
    });
    expect(readUserData(Uint8Array.of(0x1f, 0x8b, 1, 2)).warnings).toHaveLength(1);
  });

  it('never throws, and never ends in anything but a booted guest', async () => {
    const scalar = fc.oneof(
      fc.string({ maxLength: 12 }),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
    );
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 3 },
        scalar,
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(
          fc.constantFrom('path', 'name', 'content', 'encoding', 'mode', 'size', 'x'),
          tie('any'),
          { maxKeys: 3 },
        ),
      ),
    })).any;
    const config = fc.dictionary(
      fc.constantFrom(
        'hostname',
        'users',
        'user',
        'write_files',
        'runcmd',
        'bootcmd',
        'packages',
        'swap',
        'ssh_authorized_keys',
        'fqdn',
      ),
      value,
      { maxKeys: 4 },
    );
    const userData = fc.oneof(
      config.map((each) => `#cloud-config\n${JSON.stringify(each)}`),
      fc.string().map((text) => `#cloud-config\n${text}`),
      fc
        .string()
        .map(
          (text) =>
            `MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n${text}\n--b--`,
        ),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(
        userData,
        fc.oneof(
          fc.string(),
          value.map((each) => JSON.stringify({ version: 2, ethernets: each })),
        ),
        async (text, networkConfig) => {
          const { system, shell } = aShell({ seedIso: aSeed({ userData: text, networkConfig }) });
          const cloudInit = new CloudInit(system, shell);
          cloudInit.local();
          await cloudInit.network();
          await cloudInit.final();
          expect(JSON.parse(JSON.stringify(system.state()))).toEqual(system.state());
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('once per instance', () => {
  const userData =
    '#cloud-config\nbootcmd: [echo b >> /var/log/n]\nruncmd: [echo r >> /var/log/n]\n';
  const log = (bench: Awaited<ReturnType<typeof bootWith>>) =>
    bench.guest.report().files['/var/log/n']?.content;

  async function again(state: unknown, seedIso: Uint8Array | undefined) {
    const bench = aGuest({
      disk: {
        image: 'jammy',
        firstBoot: false,
        sizeBytes: 2 ** 34,
        state: JSON.parse(JSON.stringify(state)),
      },
      seedIso,
    });
    await bench.boot();
    return bench;
  }

  it('runs bootcmd at each boot, runcmd at the first', async () => {
    const first = await bootWith(userData);
    const second = await again(first.guest.diskState(), aSeed({ userData }));
    expect(log(second)).toBe('b\nr\nb\n');
  });

  it('runs all of it for another instance id', async () => {
    const first = await bootWith(userData);
    const clone = await again(
      first.guest.diskState(),
      aSeed({ userData, metaData: 'instance-id: i-2\nlocal-hostname: w2\n' }),
    );
    expect(log(clone)).toBe('b\nr\nb\nr\n');
    expect(clone.guest.report()).toMatchObject({ hostname: 'w2', instanceId: 'i-2' });
  });

  it('changes nothing without the seed', async () => {
    const first = await bootWith(userData);
    const later = await again(first.guest.diskState(), undefined);
    expect(log(later)).toBe('b\nr\n');
    expect(later.guest.report()).toMatchObject({
      hostname: 'worker-1',
      errors: [],
      instanceId: 'i-1',
    });
    expect(later.guest.report().network[0]?.addresses).toEqual(['10.0.0.50/24']);
  });

  it('is off for good after somebody disabled it', async () => {
    const first = await bootWith('#cloud-config\nruncmd: [touch /etc/cloud/cloud-init.disabled]\n');
    const later = await again(
      first.guest.diskState(),
      aSeed({ userData, metaData: 'instance-id: i-2\n' }),
    );
    expect(later.guest.report()).toMatchObject({
      cloudInitDisabled: true,
      instanceId: 'i-1',
      hostname: 'worker-1',
    });
    expect(log(later)).toBeUndefined();
  });
});
