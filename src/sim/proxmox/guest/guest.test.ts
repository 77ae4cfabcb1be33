// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { createGuest, GUEST_BOOT_DURATIONS_MS } from './guest.ts';
import {
  bootWithUserData,
  buildSeedIso,
  createGuestHarness,
  MAC,
} from './testing/guest-harness.ts';

const CLOUD_IMAGE = {
  image: 'noble-server-cloudimg-amd64.qcow2',
  isFirstBoot: true,
  sizeBytes: 2 ** 34,
  state: undefined,
};

describe('a simulated guest boot', () => {
  it('goes through all phases from off to running and notifies listeners', async () => {
    const { guest, boot, clock } = createGuestHarness({ seedIso: buildSeedIso() });
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
      GUEST_BOOT_DURATIONS_MS.firmware + GUEST_BOOT_DURATIONS_MS.kernel,
    );
    expect(await reached).toBeLessThan(60_000);
    expect(guest.report()).toMatchObject({
      hostname: 'worker-1',
      instanceId: 'i-1',
      boots: 1,
      errors: [],
    });
  });

  it('divides all durations by the speed', async () => {
    const { guest, clock } = createGuestHarness({ speed: 1000 });
    guest.start();
    await clock.advance(100);
    expect(guest.report().phase).toBe('running');
  });

  it('is deterministic', async () => {
    const run = async () => {
      const harness = await bootWithUserData('#cloud-config\nruncmd: [mktemp]\npackages: [jq]\n');
      return { report: harness.guest.report(), state: harness.guest.diskState() };
    };
    expect(await run()).toEqual(await run());
  });

  it('stays in the firmware with behaviour never-boots', async () => {
    const { guest, boot } = createGuestHarness({
      behaviour: 'never-boots',
      seedIso: buildSeedIso(),
    });
    await boot();
    expect(guest.report()).toMatchObject({ phase: 'firmware', boots: 0 });
    expect(guest.isAgentRunning()).toBe(false);
    expect(await guest.requestShutdown()).toBe(false);
  });

  it('hangs before the commands of the seed with behaviour hangs', async () => {
    const { guest, boot } = createGuestHarness({
      behaviour: 'hangs',
      seedIso: buildSeedIso({ userData: '#cloud-config\nruncmd: [touch /run/x]\n' }),
    });
    await boot();
    expect(guest.report()).toMatchObject({ phase: 'hung', hostname: 'worker-1', commandsRun: [] });
    expect(guest.isAgentRunning()).toBe(false);
    expect(() => guest.agent.ping()).toThrow('QEMU guest agent is not running');
    expect(await guest.requestShutdown()).toBe(false);
    expect(guest.isPoweredOff).toBe(false);
  });

  it('boots from the network onto an empty disk', async () => {
    const { guest, boot } = createGuestHarness({
      disk: { image: undefined, isFirstBoot: true, sizeBytes: 2 ** 34, state: undefined },
    });
    await boot();
    expect(guest.report()).toMatchObject({ phase: 'running', hostname: 'netboot' });
    expect(guest.isAgentRunning()).toBe(true);
  });

  it('treats an invalid disk state as a fresh disk', async () => {
    for (const state of [undefined, null, 7, {}, { version: 2 }]) {
      const { guest, boot } = createGuestHarness({ disk: { ...CLOUD_IMAGE, state } });
      await boot();
      expect(guest.report()).toMatchObject({ boots: 1, hostname: 'ubuntu' });
    }
  });
});

describe('the power of a simulated guest', () => {
  it('keeps the disk and loses the memory when the power is cut', async () => {
    const harness = await bootWithUserData(
      '#cloud-config\nruncmd: [touch /run/volatile, touch /etc/kept]\n',
    );
    harness.guest.stop();
    expect(harness.guest.report().phase).toBe('off');
    expect(harness.guest.isPoweredOff).toBe(false);
    await harness.boot();
    const { files, boots } = harness.guest.report();
    expect(boots).toBe(2);
    expect(files['/run/volatile']).toBeUndefined();
    expect(files['/etc/kept']).toBeDefined();
  });

  it('can be cut at any moment of the boot, and nothing runs afterwards', async () => {
    for (let at = 0; at < 40_000; at += 1500) {
      const { guest, clock } = createGuestHarness({
        seedIso: buildSeedIso({ userData: '#cloud-config\npackages: [jq]\nruncmd: [sleep 5]\n' }),
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

  it('shuts down on request once cloud-init runs', async () => {
    const { guest, clock } = createGuestHarness();
    expect(await guest.requestShutdown()).toBe(false);
    guest.start();
    guest.start();
    await clock.advance(1000);
    expect(await guest.requestShutdown()).toBe(false);
    await clock.advance(600_000);
    let seen: boolean | undefined;
    guest.onChange(() => {
      if (guest.report().phase === 'off') seen = guest.isPoweredOff;
    });
    const [first, second] = [guest.requestShutdown(), guest.requestShutdown()];
    expect(guest.report().phase).toBe('shutting-down');
    expect(guest.isAgentRunning()).toBe(false);
    await clock.advance(GUEST_BOOT_DURATIONS_MS.shutdown);
    expect(await Promise.all([first, second])).toEqual([true, true]);
    expect([guest.isPoweredOff, seen]).toEqual([true, true]);
    guest.start();
    expect(guest.isPoweredOff).toBe(false);
  });

  it('does not count as a shutdown when it is cut during the shutdown', async () => {
    const { guest, clock, boot } = createGuestHarness();
    await boot();
    const ending = guest.requestShutdown();
    guest.stop();
    await clock.advance(60_000);
    expect(await ending).toBe(false);
    expect(guest.isPoweredOff).toBe(false);
  });

  it('stays on after a shutdown request with behaviour ignores-shutdown', async () => {
    const { guest, boot } = createGuestHarness({ behaviour: 'ignores-shutdown' });
    await boot();
    expect(await guest.requestShutdown()).toBe(false);
    expect(guest.report().phase).toBe('running');
    expect(guest.isAgentRunning()).toBe(true);
  });

  it('follows reboot and poweroff commands in the guest', async () => {
    const { guest, boot, clock } = createGuestHarness();
    await boot();
    const pid = guest.agent.exec(['/sbin/reboot']);
    await clock.advance(600_000);
    expect(guest.report()).toMatchObject({ phase: 'running', boots: 2 });
    expect(() => guest.agent.execStatus(pid)).toThrow("Invalid parameter 'pid'");
    guest.agent.exec(['systemctl', 'poweroff']);
    await clock.advance(600_000);
    expect(guest.isPoweredOff).toBe(true);
  });

  it('changes without a call to unsubscribed listeners', async () => {
    const { guest, boot } = createGuestHarness();
    let notifications = 0;
    const unsubscribe = guest.onChange(() => {
      notifications += 1;
    });
    unsubscribe();
    await boot();
    expect(notifications).toBe(0);
  });
});

describe('the agent of a simulated guest', () => {
  it.each([
    [
      'runs when the image contains it',
      { disk: { ...CLOUD_IMAGE, image: 'noble-with-agent' } },
      true,
    ],
    ['does not run in a plain cloud image', { disk: CLOUD_IMAGE }, false],
    ['does not run when the VM has no agent port', { agentEnabled: false }, false],
    ['does not run with behaviour no-agent', { behaviour: 'no-agent' as const }, false],
  ])('%s', async (_, overrides, isRunning) => {
    const { guest, boot } = createGuestHarness(overrides);
    await boot();
    expect(guest.isAgentRunning()).toBe(isRunning);
  });

  it('needs a start or the next boot after its installation', async () => {
    const install = '#cloud-config\npackages: [qemu-guest-agent]\n';
    const started = await bootWithUserData(
      `${install}runcmd: [systemctl enable --now qemu-guest-agent]\n`,
      { disk: CLOUD_IMAGE },
    );
    expect(started.guest.isAgentRunning()).toBe(true);
    const harness = await bootWithUserData(install, { disk: CLOUD_IMAGE });
    expect(harness.guest.isAgentRunning()).toBe(false);
    harness.guest.stop();
    await harness.boot();
    expect(harness.guest.isAgentRunning()).toBe(true);
  });

  it('runs while cloud-init is still running', async () => {
    const { guest, clock } = createGuestHarness({
      seedIso: buildSeedIso({ userData: '#cloud-config\nruncmd: [sleep 300]\n' }),
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

  it('lists the network interfaces like qemu-ga', async () => {
    const interfaces = [
      { slot: 'net0', mac: MAC, bridge: 'vmbr0' },
      { slot: 'net1', mac: '02:00:00:AA:BB:CC', bridge: 'vmbr1' },
    ];
    const { guest, boot } = createGuestHarness({ interfaces });
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

  it('reports only a link-local address without a DHCP server', async () => {
    const { guest, boot } = createGuestHarness({ leaseAddress: () => '' });
    await boot();
    const [, nic] = guest.agent.networkGetInterfaces();
    expect(nic?.['ip-addresses']?.map((each) => each['ip-address'])).toEqual([
      'fe80::be24:11ff:fe00:7',
    ]);
  });

  it('reports the hostname and the operating system', async () => {
    const { guest } = await bootWithUserData('#cloud-config\nhostname: named\n');
    guest.agent.ping();
    expect(guest.agent.getHostName()).toEqual({ 'host-name': 'named' });
    expect(guest.agent.getOsInfo()).toMatchObject({
      id: 'ubuntu',
      'version-id': '22.04',
      machine: 'x86_64',
    });
    const debian = createGuestHarness({
      disk: { ...CLOUD_IMAGE, image: 'debian-13-generic-with-agent' },
    });
    await debian.boot();
    expect(debian.guest.agent.getOsInfo().id).toBe('debian');
  });

  it('runs programs and returns each exit status once', async () => {
    const { guest, boot, exec, clock } = createGuestHarness();
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

  it('joins a cluster by exec with the token on standard input only', async () => {
    const { guest, boot, exec } = createGuestHarness();
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

  it('starts its joined agent after a reboot without the seed', async () => {
    const harness = await bootWithUserData(`#cloud-config
write_files:
  - {path: /etc/rancher/k3s/config.yaml, content: "server: https://10.0.0.2:6443\\ntoken: t\\n", permissions: "0600"}
  - {path: /etc/systemd/system/k3s-agent.service, content: "[Service]\\nExecStart=/usr/local/bin/k3s agent\\n"}
runcmd:
  - curl -fsSLo /usr/local/bin/k3s https://example.org/k3s && chmod 0755 /usr/local/bin/k3s
  - [systemctl, enable, --now, k3s-agent]
  - touch /etc/cloud/cloud-init.disabled
`);
    expect(harness.guest.report().errors).toEqual([]);
    expect(harness.guest.report().joinAttempts).toHaveLength(1);
    const state: unknown = JSON.parse(JSON.stringify(harness.guest.diskState()));
    const next = createGuest({
      ...harness.input,
      seedIso: undefined,
      disk: { ...harness.input.disk, state },
    });
    next.start();
    await harness.clock.advance(600_000);
    expect(next.report().joinAttempts).toHaveLength(0);
    expect(next.report()).toMatchObject({
      services: { 'k3s-agent': { active: true } },
      boots: 2,
      hostname: 'worker-1',
      cloudInitDisabled: true,
    });
  });
});
