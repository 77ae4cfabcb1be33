// SPDX-License-Identifier: Apache-2.0
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DownloadResult } from '../guest-types.ts';
import { sha256Hex } from '../system/sha256.ts';
import { createShellHarness } from '../testing/shell-harness.ts';
import { applyBootSettings } from './boot-settings.ts';

async function runForOutput(text: string): Promise<string> {
  const result = await createShellHarness().sh(text);
  return result.out + result.err;
}

describe('file commands of a simulated guest', () => {
  it.each([
    ['mkdir /a/b', "mkdir: cannot create directory '/a/b': No such file or directory\n"],
    ['mkdir -p /a/b && mkdir /a', "mkdir: cannot create directory '/a': File exists\n"],
    ['touch /nodir/f', "touch: cannot create '/nodir/f': No such file or directory\n"],
    ['rm /tmp/none', "rm: cannot remove '/tmp/none': No such file or directory\n"],
    [
      'rm -f /tmp/none; mkdir -p /tmp/d/e; touch /tmp/d/e/f; rm -rf /tmp/d; [ -e /tmp/d ] || echo gone',
      'gone\n',
    ],
    ['cp /none /tmp', "cp: cannot stat '/none': No such file or directory\n"],
    [
      'echo x > /tmp/a; cp /tmp/a /tmp/b; mv /tmp/a /tmp/c; cat /tmp/b /tmp/c; [ -f /tmp/a ] || echo moved',
      'x\nx\nmoved\n',
    ],
    ['echo x | tee /tmp/a | cat; echo y | tee -a /tmp/a > /dev/null; cat /tmp/a', 'x\nx\ny\n'],
    ['ls /none', "ls: cannot access '/none': No such file or directory\n"],
    ['basename /a/b.txt .txt; dirname /a/b', 'b\n/a\n'],
    ['chmod 600 /none', "chmod: cannot access '/none': No such file or directory\n"],
    ['t=$(mktemp -d); [ -d "$t" ] && echo made', 'made\n'],
  ])('%s', async (text, expected) => {
    expect(await runForOutput(text)).toBe(expected);
  });

  it('set modes and owners', async () => {
    const { sh, system } = createShellHarness();
    await sh(
      'echo x > /tmp/a; chmod u+x,go-r /tmp/a; install -m 0755 -o ubuntu /tmp/a /usr/local/bin/b',
    );
    await sh(
      'install -D -m 640 /tmp/a /opt/new/c; install -d /opt/dir; chown root:adm /tmp/a; chmod 7 /none',
    );
    expect(system.files.get('/tmp/a')).toMatchObject({ mode: '0700', owner: 'root:adm' });
    expect(system.files.get('/usr/local/bin/b')).toMatchObject({
      mode: '0755',
      owner: 'ubuntu:ubuntu',
    });
    expect(system.files.get('/opt/new/c')?.mode).toBe('0640');
    expect(system.files.isDirectory('/opt/dir')).toBe(true);
  });

  it('create files with the umask, by redirection and by program', async () => {
    const { sh, system } = createShellHarness();
    await sh(
      'touch /tmp/old; umask 077; echo s > /tmp/a; echo s >> /tmp/old; sh -c "touch /tmp/b"; curl -so /tmp/c https://example.org',
    );
    const modes = ['/tmp/old', '/tmp/a', '/tmp/b', '/tmp/c'].map(
      (path) => system.files.get(path)?.mode,
    );
    expect(modes).toEqual(['0644', '0600', '0600', '0600']);
    expect((await sh('umask 027; env')).out).not.toContain('umask');
  });

  it.each([
    ['-e /etc', 0],
    ['-f /etc', 1],
    ['-d /etc', 0],
    ['-x /etc/machine-id', 1],
    ['-s /etc/machine-id', 0],
    ['-L /etc', 1],
    ['! -e /none', 0],
    ['-n "" -o a = a', 0],
    ['-z "" -a a != a', 1],
    ['3 -gt 2', 0],
    ['3 -le 2', 1],
    ['', 1],
    ['word', 0],
  ])('test [ %s ] with exit code %i', async (condition, code) => {
    expect((await createShellHarness().sh(`[ ${condition} ]`)).code).toBe(code);
    expect((await createShellHarness().sh(`test ${condition}`)).code).toBe(code);
  });
});

describe('text commands of a simulated guest', () => {
  it.each([
    ['echo -n a; echo -e "b\\tc"', 'ab\tc\n'],
    ['printf "%s=%d\\n" a 1 b 2; printf "100%%\\n"', 'a=1\nb=2\n100%\n'],
    ['printf "a\\nb\\n" | grep -v a; echo x | grep -q y || echo no', 'b\nno\n'],
    ['printf "A\\n" | grep -ic a; echo "a.b" | grep -F .', '1\na.b\n'],
    [
      'echo "/swap.img none swap sw 0 0" > /etc/fstab; sed -i "/ swap / s/^/#/" /etc/fstab; cat /etc/fstab',
      '#/swap.img none swap sw 0 0\n',
    ],
    ['printf "a\\nb\\n" | sed /a/d; echo aXa | sed -e "s/a/[&]/g" -e "s|X|/|"', 'b\n[a]/[a]\n'],
    ['echo k=v | sed -E "s/(.)=(.)/\\2=\\1/"; echo k=v | sed "s/\\(.\\)=/\\1:/"', 'v=k\nk:v\n'],
    ['echo a | sed y/a/b/', 'sed: not simulated: y/a/b/\n'],
    ['echo hi | base64 | base64 -d', 'hi\n'],
    ['seq 3 | tail -n 2; seq 2 3 | wc -l', '2\n3\n2\n'],
    ['echo a:b:c | cut -d : -f 2; echo abc | tr a-b xy; echo abc | tr -d b', 'b\nxyc\nac\n'],
    [
      "echo 'one two' | awk '{print $2}'; echo 10.0.0.5 | awk -F. '{print $4}'; awk 'BEGIN{}'",
      'two\n5\nawk: this program is not simulated\n',
    ],
    [
      'echo "a  b" | tr -s " "; printf "b\\na\\nb\\n" | sort -u | wc -l; echo abc | cut -c1-2; echo a b | wc -w',
      'a b\n2\nab\n2\n',
    ],
    ['echo a=1 | grep -o "[0-9]"; printf "%03d|%4s\\n" 7 ab', '1\n007|  ab\n'],
  ])('%s', async (text, expected) => {
    expect(await runForOutput(text)).toBe(expected);
  });
});

describe('sha256sum of a simulated guest', () => {
  it('computes the same SHA-256 as node:crypto', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(sha256Hex(bytes)).toBe(createHash('sha256').update(bytes).digest('hex'));
      }),
    );
  });

  it('verifies known content and accepts placeholders', async () => {
    const sum = createHash('sha256').update('hello\n').digest('hex');
    const { sh } = createShellHarness();
    const check = async (text: string) => (await sh(text)).code;
    expect(await check(`echo hello > /tmp/f; echo "${sum}  /tmp/f" | sha256sum -c -`)).toBe(0);
    expect(await check(`echo other > /tmp/f; echo "${sum}  /tmp/f" | sha256sum --status -c`)).toBe(
      1,
    );
    expect(await check(`cd /tmp; echo "${sum} *none" > sums; sha256sum -c sums`)).toBe(1);
    expect(await check('echo nonsense | sha256sum -c')).toBe(1);
    expect(await check('sha256sum -c < /dev/null')).toBe(1);
    expect(
      await check(
        `curl -fsSLo /tmp/k3s https://example.org/k3s && echo "${sum}  /tmp/k3s" | sha256sum -c`,
      ),
    ).toBe(0);
    expect((await sh('echo hello > /tmp/f; sha256sum /tmp/f')).out).toBe(`${sum}  /tmp/f\n`);
  });
});

describe('downloads of a simulated guest', () => {
  const table: Readonly<Record<string, DownloadResult>> = {
    'https://example.org/known': { content: 'known text\n' },
    'https://example.org/404': { exitCode: 22, message: 'The requested URL returned error: 404' },
  };
  const harness = (address = '10.0.0.9/24') =>
    createShellHarness({ download: (url) => table[url], leaseAddress: () => address });

  it('return the configured content or failure', async () => {
    const { sh, history } = harness();
    expect((await sh('curl -s https://example.org/known')).out).toBe('known text\n');
    expect(await sh('curl -fsS -o /tmp/x https://example.org/404')).toMatchObject({ code: 22 });
    expect((await sh('wget -q https://example.org/404')).code).toBe(4);
    expect((await sh('cd /tmp; curl -sO https://example.org/known && cat known')).out).toBe(
      'known text\n',
    );
    expect((await sh('wget -qO- https://example.org/known')).out).toBe('known text\n');
    expect((await sh('curl -o /none/x https://example.org/known')).code).toBe(23);
    expect((await sh('curl; wget')).code).toBe(1);
    expect(history.downloads).toHaveLength(6);
  });

  it('fail without a network address', async () => {
    const { sh } = harness('');
    const result = await sh('curl -fsS https://example.org/known');
    expect(result).toMatchObject({
      code: 6,
      err: 'curl: (6) Could not resolve host: example.org\n',
    });
    expect((await sh('apt-get install -y jq')).code).toBe(100);
  });

  it('do not run a script with unknown content', async () => {
    const { sh, history } = harness();
    expect((await sh('curl -s https://example.org/setup.sh | bash')).code).toBe(0);
    expect(history.warnings).toEqual([
      'a downloaded script with unknown content was not run: https://example.org/setup.sh',
    ]);
  });

  it('unpack known archives', async () => {
    const { sh, system, history } = harness();
    await sh(
      'curl -sLo /tmp/r.tgz https://example.org/rke2.linux-amd64.tar.gz; tar xzf /tmp/r.tgz -C /usr/local',
    );
    expect(system.files.isExecutable('/usr/local/bin/rke2')).toBe(true);
    await sh('curl -sL https://example.org/other.tgz | tar -xz -C /opt');
    expect(history.warnings).toHaveLength(1);
    expect((await sh('tar -xzf /none')).code).toBe(2);
    expect((await sh('tar -xzf /tmp/r.tgz -C /none')).code).toBe(2);
  });
});

describe('operating system commands of a simulated guest', () => {
  it('change hostname, swap, kernel modules, sysctl, users and power', async () => {
    const { sh, system } = createShellHarness();
    system.isSwapOn = true;
    await sh(
      'hostnamectl set-hostname w9; swapoff -a; modprobe -a overlay br_netfilter; sysctl -w net.ipv4.ip_forward=1',
    );
    expect(system.files.read('/etc/hostname')).toBe('w9\n');
    expect(system).toMatchObject({ hostname: 'w9', isSwapOn: false });
    expect([...system.kernelModules]).toEqual(['overlay', 'br_netfilter']);
    expect((await sh('hostname; sysctl -n net.ipv4.ip_forward; uname -m; nproc; whoami')).out).toBe(
      'w9\n1\nx86_64\n2\nroot\n',
    );
    await sh(
      'printf "a.b = 2\\n" > /etc/sysctl.d/9.conf; sysctl --system; useradd -m -s /bin/bash dev',
    );
    expect(system.sysctl.get('a.b')).toBe('2');
    expect(system.users.get('dev')?.shell).toBe('/bin/bash');
    expect((await sh('id dev >/dev/null && id nobody2')).code).toBe(1);
    await sh('shutdown -r now');
    expect(system.powerRequest).toBe('reboot');
  });

  it('report addresses, cloud-init status and SMBIOS UUID', async () => {
    const { sh, system } = createShellHarness();
    expect(
      (await sh('ip a; hostname -I; nc -z 10.0.0.2 6443 && dmidecode -s system-uuid')).out,
    ).toBe('10.0.0.50\n10.0.0.50 \n7c9e6679-7425-40de-944b-e07fc1f90ae7\n');
    expect((await sh('cloud-init status')).out).toBe('status: running\n');
    system.isBootFinished = true;
    system.instanceId = 'i-1';
    expect((await sh('cloud-init status --wait')).out).toBe('status: done\n');
    await sh('touch /etc/cloud/cloud-init.disabled; cloud-init clean --logs --machine-id');
    expect(system.instanceId).toBeUndefined();
    expect(system.files.exists('/etc/cloud/cloud-init.disabled')).toBe(false);
    expect(system.files.read('/etc/machine-id')).toBe('');
    expect((await sh('useradd a && useradd a')).code).toBe(9);
    expect((await sh('swapon --show; swapon -a; shutdown -c')).code).toBe(0);
    expect(system).toMatchObject({ isSwapOn: true, powerRequest: undefined });
    expect(
      (
        await sh(
          'curl -s https://example.org/key | gpg --dearmor -o /usr/share/keyrings/k.gpg && ls /usr/share/keyrings/k.gpg',
        )
      ).code,
    ).toBe(0);
    expect((await sh('lsmod; nohup nice -n 5 setsid uname -r')).out).toBe('5.15.0-157-generic\n');
  });

  it('load sysctl settings and kernel modules at boot', () => {
    const { system } = createShellHarness();
    system.files.write('/etc/sysctl.d/k8s.conf', 'net.ipv4.ip_forward = 1\n');
    system.files.write('/etc/modules-load.d/k8s.conf', '# comment\noverlay\n\n');
    applyBootSettings(system);
    expect(system.sysctl.get('net.ipv4.ip_forward')).toBe('1');
    expect([...system.kernelModules]).toEqual(['overlay']);
  });

  it('install packages and start their units, except the guest agent', async () => {
    const { sh, system } = createShellHarness();
    await sh(
      'DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Use-Pty=0 install -y containerd kubeadm=1.33.0-1.1 qemu-guest-agent',
    );
    expect([...system.packages]).toEqual(
      expect.arrayContaining(['containerd', 'kubeadm', 'qemu-guest-agent']),
    );
    expect((await sh('systemctl is-active containerd')).out).toBe('active\n');
    expect(await sh('systemctl is-active qemu-guest-agent')).toMatchObject({
      code: 3,
      out: 'inactive\n',
    });
    expect(
      (await sh('systemctl start qemu-guest-agent && systemctl is-active -q qemu-guest-agent'))
        .code,
    ).toBe(0);
    expect((await sh('apt-get install -y "No Such"')).code).toBe(100);
    expect(
      (
        await sh(
          'dpkg-query -W containerd && apt-get remove -y containerd; dpkg-query -W containerd',
        )
      ).code,
    ).toBe(1);
  });
});

describe('systemctl of a simulated guest', () => {
  it('reports whether the boot is finished', async () => {
    const { sh, system } = createShellHarness();
    expect(await sh('systemctl is-system-running')).toMatchObject({ code: 1, out: 'starting\n' });
    system.isBootFinished = true;
    expect(await sh('systemctl is-system-running --wait')).toMatchObject({
      code: 0,
      out: 'running\n',
    });
    system.failedUnits.add('x');
    expect(await sh('systemctl is-system-running')).toMatchObject({ code: 1, out: 'degraded\n' });
  });

  it('fails for an unknown unit', async () => {
    const { sh } = createShellHarness();
    expect(await sh('systemctl start nothing')).toMatchObject({ code: 5 });
    expect((await sh('systemctl enable --now nothing.service')).code).toBe(5);
    expect((await sh('systemctl daemon-reload && systemctl frob x')).code).toBe(1);
    expect((await sh('systemctl cat nothing')).code).toBe(1);
  });

  it('runs the commands of a unit with its environment', async () => {
    const { sh, system, history } = createShellHarness();
    await sh(`cat > /etc/systemd/system/hello.service <<'END'
[Service]
Environment="A=1 2" B=3
EnvironmentFile=-/etc/default/none
ExecStartPre=-/bin/false
ExecStart=/bin/sh -c 'echo "$A" $B > \\
  /tmp/said'
END
systemctl enable --now hello`);
    expect(system.files.read('/tmp/said')).toBe('1 2 3\n');
    expect((await sh('systemctl is-enabled hello; systemctl is-active hello')).out).toBe(
      'enabled\nactive\n',
    );
    await sh('systemctl disable --now hello');
    expect(system.enabledUnits.has('hello')).toBe(false);
    await sh(
      'printf "[Service]\\nEnvironmentFile=/none\\nExecStart=/bin/true\\n" > /etc/systemd/system/bad.service',
    );
    expect((await sh('systemctl restart bad')).code).toBe(1);
    expect((await sh('systemctl is-failed bad')).out).toBe('failed\n');
    expect(history.errors[0]).toContain('bad.service');
  });
});
