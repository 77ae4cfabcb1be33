// SPDX-License-Identifier: Apache-2.0
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bootWithUserData, buildSeedIso, createGuestHarness } from '../testing/guest-harness.ts';
import { createShellHarness } from '../testing/shell-harness.ts';
import { CloudInit } from './cloud-init.ts';
import { readUserData } from './user-data.ts';

const HOME = ['', 'home', 'ubuntu'].join('/');
const KEY = 'ssh-ed25519 AAAA me@example';

async function bootAndReport(userData: string) {
  return (await bootWithUserData(userData)).guest.report();
}

describe('cloud-init hostname', () => {
  it.each([
    ['', 'worker-1'],
    ['hostname: named', 'named'],
    ['fqdn: named.lab.example', 'named'],
    ['hostname: short\nfqdn: other.lab.example', 'short'],
    ['fqdn: named.lab.example\nprefer_fqdn_over_hostname: true', 'named.lab.example'],
    ['hostname: a.lab.example\nfqdn: a.lab.example', 'a.lab.example'],
    ['hostname: a.lab.example', 'a'],
    ['hostname: named\npreserve_hostname: true', 'worker-1'],
  ])('is set from %j to %s', async (config, expected) => {
    expect((await bootAndReport(`#cloud-config\n${config}\n`)).hostname).toBe(expected);
  });

  it('is cut at the first dot of the name in meta-data, whatever user-data prefers', async () => {
    const seedIso = buildSeedIso({
      userData: '#cloud-config\nprefer_fqdn_over_hostname: true\n',
      metaData: 'instance-id: i-1\nlocal-hostname: a.lab.example\n',
    });
    const harness = createGuestHarness({ seedIso });
    await harness.boot();
    expect(harness.guest.report().hostname).toBe('a');
  });

  it('is written to /etc/hosts with manage_etc_hosts', async () => {
    const report = await bootAndReport('#cloud-config\nfqdn: a.lab\nmanage_etc_hosts: true\n');
    expect(report.files['/etc/hosts']?.content).toBe('127.0.1.1 a.lab a\n127.0.0.1 localhost\n');
    expect(
      (await bootAndReport('#cloud-config\nfqdn: a.lab\n')).files['/etc/hosts'],
    ).toBeUndefined();
  });
});

describe('cloud-init users', () => {
  it('adds the SSH keys to the default user', async () => {
    const report = await bootAndReport(`#cloud-config\nssh_authorized_keys: ["${KEY}"]\n`);
    expect(report.users.map((user) => user.name)).toEqual(['root', 'ubuntu']);
    expect(report.users[1]).toMatchObject({ authorizedKeys: [KEY], lockPassword: true });
    expect(report.files[`${HOME}/.ssh/authorized_keys`]).toEqual({
      content: `${KEY}\n`,
      encoding: 'utf8',
      mode: '0600',
      owner: 'ubuntu:ubuntu',
    });
  });

  it('creates the listed users, and the default user only when listed', async () => {
    const report = await bootAndReport(`#cloud-config
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
      'users: an entry has no name',
      'users: an entry is neither a name nor a mapping',
    ]);
  });

  it('renames the default user', async () => {
    const report = await bootAndReport(
      '#cloud-config\nuser: admin\npassword: $5$x\nusers: [default]\n',
    );
    expect(report.users[1]).toMatchObject({
      name: 'admin',
      passwordHash: '$5$x',
      lockPassword: false,
    });
  });
});

describe('cloud-init write_files', () => {
  it('decodes content, sets modes and owners, appends and defers', async () => {
    const gz = gzipSync('zipped\n').toString('base64');
    const report = await bootAndReport(`#cloud-config
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
    ['{path: /etc/x, content: "###", encoding: b64}', 'cannot decode the content'],
    ['{path: /etc/x, content: eHg=, encoding: gz+b64}', 'cannot decode the content'],
  ])('stops at the first failing entry %s', async (entry, problem) => {
    const report = await bootAndReport(
      `#cloud-config\nwrite_files: [{content: n}, ${entry}, {path: /etc/after, content: a}]\n`,
    );
    expect(report.errors).toEqual([`write_files: /etc/x: ${problem}`]);
    expect(report.warnings).toEqual(['write_files: an entry has no path']);
    expect(report.files['/etc/after']).toBeUndefined();
  });

  it('uses mode 0644 for invalid permissions', async () => {
    const report = await bootAndReport(
      '#cloud-config\nwrite_files: [{path: /etc/x, permissions: rw}]\n',
    );
    expect(report.files['/etc/x']?.mode).toBe('0644');
    expect(report.warnings).toHaveLength(1);
  });
});

describe('cloud-init commands and packages', () => {
  it('runs bootcmd, packages, deferred files and runcmd in this order', async () => {
    const report = await bootAndReport(`#cloud-config
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

  it('continues after a failed command and fails only with the last command', async () => {
    const going = await bootAndReport('#cloud-config\nruncmd: ["false", "touch /run/on"]\n');
    expect(going.files['/run/on']).toBeDefined();
    expect(going.errors).toEqual([]);
    expect(going.warnings).toEqual(['runcmd: exit code 1: false']);
    const failed = await bootAndReport('#cloud-config\nruncmd: [frobnicate]\n');
    expect(failed.errors).toEqual([
      'sh: frobnicate: not found',
      'runcmd: the script ended with exit code 127',
    ]);
    const ended = await bootAndReport('#cloud-config\nruncmd: ["exit 3", "touch /run/on"]\n');
    expect(ended.files['/run/on']).toBeUndefined();
  });

  it('runs no command when one entry is invalid', async () => {
    const report = await bootAndReport('#cloud-config\nruncmd: ["touch /run/on", {a: b}]\n');
    expect(report.files['/run/on']).toBeUndefined();
    expect(report.errors).toEqual([
      'runcmd: no command was run: an entry is neither a string nor a list',
    ]);
  });

  it('runs a user script and logs its output', async () => {
    const report = await bootAndReport('#!/bin/bash\necho from-script\nexit 4\n');
    expect(report.files['/var/log/cloud-init-output.log']?.content).toBe('from-script\n');
    expect(report.errors).toEqual(['user script: exit code 4']);
  });

  it('enables swap, and applies power_state', async () => {
    expect(
      (await bootAndReport('#cloud-config\nswap: {filename: /swap.img, size: 1G}\n')).swapOn,
    ).toBe(true);
    expect((await bootAndReport('#cloud-config\nswap: {size: 0}\n')).swapOn).toBe(false);
    const off = await bootWithUserData(
      '#cloud-config\npower_state: {mode: poweroff, delay: "+1"}\n',
    );
    expect(off.guest.isPoweredOff).toBe(true);
    const rebooted = await bootWithUserData('#cloud-config\npower_state: {mode: reboot}\n');
    expect(rebooted.guest.report()).toMatchObject({ boots: 2, phase: 'running' });
    const stays = await bootWithUserData(
      '#cloud-config\npower_state: {mode: poweroff, condition: false}\n',
    );
    expect(stays.guest.report().phase).toBe('running');
  });
});

describe('cloud-init user-data', () => {
  it('warns about unknown keys and unusable data', async () => {
    expect((await bootAndReport('#cloud-config\nruncmds: []\nntp: {}\n')).warnings).toEqual([
      "cloud-config: unknown key 'runcmds'",
    ]);
    expect((await bootAndReport('hostname: x\n')).warnings).toEqual([
      "user-data: unknown type, starts with 'hostname: x'",
    ]);
    expect((await bootAndReport('#cloud-config\na: [\n')).warnings[0]).toContain(
      'user-data: not YAML',
    );
    expect((await bootAndReport('#cloud-config\n- a\n')).warnings).toEqual([
      'user-data: the cloud-config is not a mapping',
    ]);
    expect((await bootAndReport('#include\nhttps://example.org\n')).warnings).toHaveLength(1);
    expect(
      (await bootAndReport('## template: jinja\n#cloud-config\nhostname: {{ x }}\n')).warnings,
    ).toHaveLength(1);
    expect((await bootAndReport('## template: jinja\n#cloud-config\nhostname: x\n')).hostname).toBe(
      'x',
    );
  });

  it('reads a MIME archive; later parts take precedence', async () => {
    const script = Buffer.from('#!/bin/sh\ntouch /run/script\n').toString('base64');
    const report = await bootAndReport(`Content-Type: multipart/mixed;
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

  it('never throws, for any user-data and network-config', async () => {
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
          const { system, shell } = createShellHarness({
            seedIso: buildSeedIso({ userData: text, networkConfig }),
          });
          const cloudInit = new CloudInit(system, shell);
          cloudInit.runLocalStage();
          await cloudInit.runNetworkStage();
          await cloudInit.runFinalStage();
          expect(JSON.parse(JSON.stringify(system.toDiskState()))).toEqual(system.toDiskState());
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('cloud-init instance ids', () => {
  const userData =
    '#cloud-config\nbootcmd: [echo b >> /var/log/n]\nruncmd: [echo r >> /var/log/n]\n';
  const log = (harness: Awaited<ReturnType<typeof bootWithUserData>>) =>
    harness.guest.report().files['/var/log/n']?.content;

  async function bootAgain(state: unknown, seedIso: Uint8Array | undefined) {
    const harness = createGuestHarness({
      disk: {
        image: 'jammy',
        isFirstBoot: false,
        sizeBytes: 2 ** 34,
        state: JSON.parse(JSON.stringify(state)),
      },
      seedIso,
    });
    await harness.boot();
    return harness;
  }

  it('run bootcmd at each boot and runcmd only at the first', async () => {
    const first = await bootWithUserData(userData);
    const second = await bootAgain(first.guest.diskState(), buildSeedIso({ userData }));
    expect(log(second)).toBe('b\nr\nb\n');
  });

  it('run all modules again when the id changes', async () => {
    const first = await bootWithUserData(userData);
    const clone = await bootAgain(
      first.guest.diskState(),
      buildSeedIso({ userData, metaData: 'instance-id: i-2\nlocal-hostname: w2\n' }),
    );
    expect(log(clone)).toBe('b\nr\nb\nr\n');
    expect(clone.guest.report()).toMatchObject({ hostname: 'w2', instanceId: 'i-2' });
  });

  it('run nothing without a seed', async () => {
    const first = await bootWithUserData(userData);
    const later = await bootAgain(first.guest.diskState(), undefined);
    expect(log(later)).toBe('b\nr\n');
    expect(later.guest.report()).toMatchObject({
      hostname: 'worker-1',
      errors: [],
      instanceId: 'i-1',
    });
    expect(later.guest.report().network[0]?.addresses).toEqual(['10.0.0.50/24']);
  });

  it('run nothing after cloud-init was disabled', async () => {
    const first = await bootWithUserData(
      '#cloud-config\nruncmd: [touch /etc/cloud/cloud-init.disabled]\n',
    );
    const later = await bootAgain(
      first.guest.diskState(),
      buildSeedIso({ userData, metaData: 'instance-id: i-2\n' }),
    );
    expect(later.guest.report()).toMatchObject({
      cloudInitDisabled: true,
      instanceId: 'i-1',
      hostname: 'worker-1',
    });
    expect(log(later)).toBeUndefined();
  });
});
