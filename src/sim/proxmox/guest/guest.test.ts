// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { createGuest, GUEST_BOOT_DURATIONS } from './guest.ts';
import { aGuest, aSeed, bootWith, MAC } from './testing/a-guest.ts';

const CLOUD_IMAGE = {
  image: 'noble-server-cloudimg-amd64.qcow2',
  firstBoot: true,
  sizeBytes: 2 ** 34,
  state: undefined,
};

describe('boot', () => {
  it('goes from off to running, and tells', async () => {
    const { guest, boot, clock } = aGuest({ seedIso: aSeed() });
    const phases = [guest.report().phase];
    guest.onChange(() => {
      const { phase } = guest.report();
      if (phases.at(-1) !== phase) phases.push(phase);
    });
    const started = clock.now();
    const reached = new Promise<number>((resolve) => {
      guest.onChange(() => {
        if (guest.report().phase === 'running') resolve(clock.now() - started);
      });
    });
    await boot();
    expect(phases).toEqual(['off', 'firmware', 'kernel', 'cloud-init', 'running']);
    expect(await reached).toBeGreaterThan(
      GUEST_BOOT_DURATIONS.firmware + GUEST_BOOT_DURATIONS.kernel,
    );
    expect(await reached).toBeLessThan(60_000);
    expect(guest.report()).toMatchObject({
      hostname: 'worker-1',
      instanceId: 'i-1',
      boots: 1,
      errors: [],
    });
  });

  it('divides everything by its speed', async () => {
    const { guest, clock } = aGuest({ speed: 1000 });
    guest.start();
    await clock.advance(100);
    expect(guest.report().phase).toBe('running');
  });

  it('is the same every time', async () => {
    const run = async () => {
      const bench = await bootWith('#cloud-config\nruncmd: [mktemp]\npackages: [jq]\n');
      return { report: bench.guest.report(), state: bench.guest.diskState() };
    };
    expect(await run()).toEqual(await run());
  });

  it('never boots when it is told not to', async () => {
    const { guest, boot } = aGuest({ behaviour: 'never-boots', seedIso: aSeed() });
    await boot();
    expect(guest.report()).toMatchObject({ phase: 'firmware', boots: 0 });
    expect(guest.agentAnswers()).toBe(false);
    expect(await guest.requestShutdown()).toBe(false);
  });

  it('hangs before the commands of its seed', async () => {
    const { guest, boot } = aGuest({
      behaviour: 'hangs',
      seedIso: aSeed({ userData: '#cloud-config\nruncmd: [touch /run/x]\n' }),
    });
    await boot();
    expect(guest.report()).toMatchObject({ phase: 'hung', hostname: 'worker-1', commandsRun: [] });
    expect(guest.agentAnswers()).toBe(false);
    expect(() => guest.agent.ping()).toThrow('QEMU guest agent is not running');
    expect(await guest.requestShutdown()).toBe(false);
    expect(guest.poweredOff).toBe(false);
  });

  it('boots from the network onto an empty disk', async () => {
    const { guest, boot } = aGuest({
      disk: { image: undefined, firstBoot: true, sizeBytes: 2 ** 34, state: undefined },
    });
    await boot();
    expect(guest.report()).toMatchObject({ phase: 'running', hostname: 'netboot' });
    expect(guest.agentAnswers()).toBe(true);
  });

  it('takes anything that is no state for a fresh disk', async () => {
    for (const state of [undefined, null, 7, {}, { version: 2 }]) {
      const { guest, boot } = aGuest({ disk: { ...CLOUD_IMAGE, state } });
      await boot();
      expect(guest.report()).toMatchObject({ boots: 1, hostname: 'ubuntu' });
    }
  });
});

describe('power', () => {
  it('loses what is in memory when the plug is pulled, and keeps the disk', async () => {
    const bench = await bootWith('#cloud-config\nruncmd: [touch /run/volatile, touch /etc/kept]\n');
    bench.guest.stop();
    expect(bench.guest.report().phase).toBe('off');
    expect(bench.guest.poweredOff).toBe(false);
    await bench.boot();
    const { files, boots } = bench.guest.report();
    expect(boots).toBe(2);
    expect(files['/run/volatile']).toBeUndefined();
    expect(files['/etc/kept']).toBeDefined();
  });

  it('stops at any moment, and nothing goes on afterwards', async () => {
    for (let at = 0; at < 40_000; at += 1500) {
      const { guest, clock } = aGuest({
        seedIso: aSeed({ userData: '#cloud-config\npackages: [jq]\nruncmd: [sleep 5]\n' }),
      });
      guest.start();
      await clock.advance(at);
      guest.stop();
      expect(clock.sleeping).toBe(0);
      const before = guest.report();
      await clock.advance(600_000);
      expect(guest.report()).toEqual(before);
      guest.stop();
    }
  });

  it('shuts down when asked, once it listens', async () => {
    const { guest, clock } = aGuest();
    expect(await guest.requestShutdown()).toBe(false);
    guest.start();
    guest.start();
    await clock.advance(1000);
    expect(await guest.requestShutdown()).toBe(false);
    await clock.advance(600_000);
    let seen: boolean | undefined;
    guest.onChange(() => {
      if (guest.report().phase === 'off') seen = guest.poweredOff;
    });
    const [first, second] = [guest.requestShutdown(), guest.requestShutdown()];
    expect(guest.report().phase).toBe('shutting-down');
    expect(guest.agentAnswers()).toBe(false);
    await clock.advance(GUEST_BOOT_DURATIONS.shutdown);
    expect(await Promise.all([first, second])).toEqual([true, true]);
    expect([guest.poweredOff, seen]).toEqual([true, true]);
    guest.start();
    expect(guest.poweredOff).toBe(false);
  });

  it('does not end in a shutdown when the plug is pulled meanwhile', async () => {
    const { guest, clock, boot } = aGuest();
    await boot();
    const ending = guest.requestShutdown();
    guest.stop();
    await clock.advance(60_000);
    expect(await ending).toBe(false);
    expect(guest.poweredOff).toBe(false);
  });

  it('takes no notice of a shutdown when it is told so, and works otherwise', async () => {
    const { guest, boot } = aGuest({ behaviour: 'ignores-shutdown' });
    await boot();
    expect(await guest.requestShutdown()).toBe(false);
    expect(guest.report().phase).toBe('running');
    expect(guest.agentAnswers()).toBe(true);
  });

  it('ends or starts again by its own commands', async () => {
    const { guest, boot, clock } = aGuest();
    await boot();
    const pid = guest.agent.exec(['/sbin/reboot']);
    await clock.advance(600_000);
    expect(guest.report()).toMatchObject({ phase: 'running', boots: 2 });
    expect(() => guest.agent.execStatus(pid)).toThrow("Invalid parameter 'pid'");
    guest.agent.exec(['systemctl', 'poweroff']);
    await clock.advance(600_000);
    expect(guest.poweredOff).toBe(true);
  });

  it('stops telling who does not listen any more', async () => {
    const { guest, boot } = aGuest();
    let told = 0;
    const unsubscribe = guest.onChange(() => {
      told += 1;
    });
    unsubscribe();
    await boot();
    expect(told).toBe(0);
  });
});

describe('agent', () => {
  it.each([
    ['the image brings it', { disk: { ...CLOUD_IMAGE, image: 'noble-with-agent' } }, true],
    ['a cloud image has none', { disk: CLOUD_IMAGE }, false],
    ['the VM has no port for it', { agentEnabled: false }, false],
    ['the guest is told to have none', { behaviour: 'no-agent' as const }, false],
  ])('%s', async (_, overrides, answers) => {
    const { guest, boot } = aGuest(overrides);
    await boot();
    expect(guest.agentAnswers()).toBe(answers);
  });

  it('needs a start after its installation, or the next boot', async () => {
    const install = '#cloud-config\npackages: [qemu-guest-agent]\n';
    const started = await bootWith(
      `${install}runcmd: [systemctl enable --now qemu-guest-agent]\n`,
      { disk: CLOUD_IMAGE },
    );
    expect(started.guest.agentAnswers()).toBe(true);
    const bench = await bootWith(install, { disk: CLOUD_IMAGE });
    expect(bench.guest.agentAnswers()).toBe(false);
    bench.guest.stop();
    await bench.boot();
    expect(bench.guest.agentAnswers()).toBe(true);
  });

  it('answers while cloud-init is still at work', async () => {
    const { guest, clock } = aGuest({
      seedIso: aSeed({ userData: '#cloud-config\nruncmd: [sleep 300]\n' }),
    });
    guest.start();
    await clock.advance(120_000);
    const pids = [
      guest.agent.exec(['systemctl', 'is-system-running']),
      guest.agent.exec(['systemctl', 'is-system-running', '--wait']),
    ];
    await clock.advance(1000);
    const [now, waiting] = pids.map((pid) => guest.agent.execStatus(pid));
    expect(now).toEqual({ exited: 1, exitcode: 1, 'out-data': 'starting\n' });
    expect(waiting).toEqual({ exited: 0 });
    await clock.advance(600_000);
    expect(guest.agent.execStatus(pids[1]!)).toEqual({
      exited: 1,
      exitcode: 0,
      'out-data': 'running\n',
    });
  });

  it('lists the interfaces as qemu-ga does', async () => {
    const interfaces = [
      { slot: 'net0', mac: MAC, bridge: 'vmbr0' },
      { slot: 'net1', mac: '02:00:00:AA:BB:CC', bridge: 'vmbr1' },
    ];
    const { guest, boot } = aGuest({ interfaces });
    await boot();
    expect(guest.agent.networkGetInterfaces()).toEqual([
      {
        name: 'lo',
        'hardware-address': '00:00:00:00:00:00',
        'ip-addresses': [
          { 'ip-address-type': 'ipv4', 'ip-address': '127.0.0.1', prefix: 8 },
          { 'ip-address-type': 'ipv6', 'ip-address': '::1', prefix: 128 },
        ],
      },
      {
        name: 'ens18',
        'hardware-address': 'bc:24:11:00:00:07',
        'ip-addresses': [
          { 'ip-address-type': 'ipv4', 'ip-address': '10.0.0.50', prefix: 24 },
          { 'ip-address-type': 'ipv6', 'ip-address': 'fe80::be24:11ff:fe00:7', prefix: 64 },
        ],
      },
      { name: 'ens19', 'hardware-address': '02:00:00:aa:bb:cc' },
    ]);
  });

  it('has only link-local where nobody leases', async () => {
    const { guest, boot } = aGuest({ leaseAddress: () => '' });
    await boot();
    const [, nic] = guest.agent.networkGetInterfaces();
    expect(nic?.['ip-addresses']?.map((each) => each['ip-address'])).toEqual([
      'fe80::be24:11ff:fe00:7',
    ]);
  });

  it('tells the name and the system', async () => {
    const { guest } = await bootWith('#cloud-config\nhostname: named\n');
    guest.agent.ping();
    expect(guest.agent.getHostName()).toEqual({ 'host-name': 'named' });
    expect(guest.agent.getOsInfo()).toMatchObject({
      id: 'ubuntu',
      'version-id': '22.04',
      machine: 'x86_64',
    });
    const debian = aGuest({ disk: { ...CLOUD_IMAGE, image: 'debian-13-generic-with-agent' } });
    await debian.boot();
    expect(debian.guest.agent.getOsInfo().id).toBe('debian');
  });

  it('runs programs, and lets each exit be read once', async () => {
    const { guest, boot, exec, clock } = aGuest();
    await boot();
    const pid = guest.agent.exec(['/bin/sleep', '10']);
    await clock.advance(1000);
    expect(guest.agent.execStatus(pid)).toEqual({ exited: 0 });
    expect(guest.agent.execStatus(pid)).toEqual({ exited: 0 });
    await clock.advance(20_000);
    expect(guest.agent.execStatus(pid)).toEqual({ exited: 1, exitcode: 0 });
    expect(() => guest.agent.execStatus(pid)).toThrow("Agent error: Invalid parameter 'pid'");
    expect(await exec(['cat'], 'from stdin')).toEqual({
      exited: 1,
      exitcode: 0,
      'out-data': 'from stdin',
    });
    expect(await exec(['/bin/bash', '-s'], 'echo $((2+3)); echo bad >&2; exit 9')).toEqual({
      exited: 1,
      exitcode: 9,
      'out-data': '5\n',
      'err-data': 'bad\n',
    });
    expect(await exec(['sh'], 'hostname')).toMatchObject({ 'out-data': 'ubuntu\n' });
    expect(() => guest.agent.exec(['systemctl status'])).toThrow('Failed to execute child process');
  });

  it('joins by exec, with the secret on standard input only', async () => {
    const { guest, boot, exec } = aGuest();
    await boot();
    const script = `set -eu
mkdir -p /etc/rancher/k3s
umask 077
cat > /etc/rancher/k3s/config.yaml <<'END'
server: https://10.0.0.2:6443
token: secret-token
END
curl -fsSLo /usr/local/bin/k3s https://example.org/k3s
chmod 0755 /usr/local/bin/k3s
printf '[Service]\\nExecStart=/usr/local/bin/k3s agent\\n' > /etc/systemd/system/k3s-agent.service
systemctl daemon-reload
systemctl enable --now k3s-agent
`;
    expect(await exec(['/bin/sh', '-s'], script)).toEqual({ exited: 1, exitcode: 0 });
    const report = guest.report();
    expect(report.joinAttempts).toMatchObject([{ token: 'secret-token', nodeName: 'ubuntu' }]);
    expect(report.services['k3s-agent']).toEqual({ enabled: true, active: true });
    expect(JSON.stringify(report.commandsRun)).not.toContain('secret-token');
  });

  it('has its node back after a reboot', async () => {
    const bench = await bootWith(`#cloud-config
write_files:
  - {path: /etc/rancher/k3s/config.yaml, content: "server: https://10.0.0.2:6443\\ntoken: t\\n", permissions: "0600"}
  - {path: /etc/systemd/system/k3s-agent.service, content: "[Service]\\nExecStart=/usr/local/bin/k3s agent\\n"}
runcmd:
  - curl -fsSLo /usr/local/bin/k3s https://example.org/k3s && chmod 0755 /usr/local/bin/k3s
  - [systemctl, enable, --now, k3s-agent]
  - touch /etc/cloud/cloud-init.disabled
`);
    expect(bench.guest.report().errors).toEqual([]);
    expect(bench.guest.report().joinAttempts).toHaveLength(1);
    const state: unknown = JSON.parse(JSON.stringify(bench.guest.diskState()));
    const next = createGuest({
      ...bench.input,
      seedIso: undefined,
      disk: { ...bench.input.disk, state },
    });
    next.start();
    await bench.clock.advance(600_000);
    expect(next.report().joinAttempts).toMatchObject([
      { server: 'https://10.0.0.2:6443', token: 't' },
    ]);
    expect(next.report()).toMatchObject({
      boots: 2,
      hostname: 'worker-1',
      cloudInitDisabled: true,
    });
  });
});
