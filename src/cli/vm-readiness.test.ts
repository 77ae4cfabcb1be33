// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine, MachineId, Phase } from '../model/machine.ts';
import { Unreachable } from '../ports/errors.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { GuestInterface } from '../ports/hypervisor.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost, SshTarget } from './context.ts';
import { loginOf, ReadinessWait } from './vm-readiness.ts';

function aMachine(phase: Phase): Machine {
  return {
    id: '00000000-0000-4000-8000-000000000001' as MachineId,
    pool: 'role:worker',
    phase,
    phaseSince: 0,
    requestedAt: 0,
    size: { cpu: 1, memoryBytes: 1, diskBytes: 1 },
    attempts: 0,
    placement: {
      region: 'lab',
      host: 'pve1',
      vmId: 1_250,
      name: 'k8s-worker-1',
      diskStorage: 'local-lvm',
      addresses: [],
    },
  };
}

/** A guest whose interfaces and SSH server a test controls. */
function aSite(environment: Readonly<Record<string, string>> = {}, ssh = {}) {
  const clock = new VirtualClock();
  const guest = { interfaces: [] as GuestInterface[], sshError: undefined as Error | undefined };
  const logins: SshTarget[] = [];
  const host = {
    context: {
      clock,
      environment,
      signal: new AbortController().signal,
      adapters: {
        checkSshLogin: async (target: SshTarget) => {
          logins.push(target);
          if (guest.sshError !== undefined) throw guest.sshError;
        },
      },
    },
  } as unknown as CommandHost;
  const open = {
    config: {
      readiness: { timeoutMs: 300_000, sshIntervalMs: 10_000 },
      ssh: { user: 'ubuntu', publicKeys: ['key'], publicKeyPaths: [], ...ssh },
    },
    hypervisors: new Map([['lab', { guestInterfaces: async () => guest.interfaces }]]),
  } as unknown as OpenFleet;
  const wait = new ReadinessWait(host, open, { user: 'ubuntu', privateKeyPath: '/key' });
  /** Observes, and lets the check that was started end. */
  const observe = async (phase: Phase) => {
    wait.observe(aMachine(phase));
    await clock.advance(0);
    return wait.observe(aMachine(phase));
  };
  /** Observes while the check that it starts is in progress. */
  const start = (phase: Phase) => wait.observe(aMachine(phase));
  return { clock, guest, logins, host, open, start, observe };
}

const ETH0 = { name: 'eth0', mac: undefined, addresses: ['fd00::7/64', '10.0.0.7/24'] };

describe('ReadinessWait', () => {
  it('waits for the agent, then an address, then a login, and names each', async () => {
    const site = aSite();
    expect(await site.observe('creating')).toEqual({ state: 'waiting' });
    expect(await site.observe('booting')).toEqual({
      state: 'waiting',
      waitsFor: 'the guest agent',
    });
    expect(await site.observe('ready')).toEqual({ state: 'waiting', waitsFor: 'an address' });
    site.guest.interfaces = [
      { name: 'docker0', mac: undefined, addresses: ['172.17.0.1/16'] },
      ETH0,
    ];
    site.guest.sshError = new Unreachable('SSH_UNREACHABLE', 'connection refused');
    await site.clock.advance(10_000);
    expect(await site.observe('ready')).toEqual({
      state: 'waiting',
      waitsFor: 'a login over SSH at 10.0.0.7: connection refused',
    });
    site.guest.sshError = undefined;
    expect(await site.observe('ready')).toMatchObject({ state: 'waiting' });
    await site.clock.advance(10_000);
    expect(await site.observe('ready')).toEqual({ state: 'ready', addresses: ETH0.addresses });
    expect(site.logins).toEqual([
      { user: 'ubuntu', privateKeyPath: '/key', host: '10.0.0.7' },
      { user: 'ubuntu', privateKeyPath: '/key', host: '10.0.0.7' },
    ]);
  });

  it('says the same while logins fail for the same reason', async () => {
    const site = aSite();
    site.guest.interfaces = [ETH0];
    site.guest.sshError = new Unreachable('SSH_UNREACHABLE', 'connection refused');
    await site.observe('ready');
    const texts = new Set<unknown>();
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await site.clock.advance(10_000);
      for (const readiness of [site.start('ready'), await site.observe('ready')]) {
        texts.add('waitsFor' in readiness ? readiness.waitsFor : undefined);
      }
    }
    expect([...texts]).toEqual(['a login over SSH at 10.0.0.7: connection refused']);
    expect(site.logins).toHaveLength(4);
  });

  it('is not ready in time when the time since the start of the VM has passed', async () => {
    const site = aSite();
    await site.observe('creating');
    await site.clock.advance(600_000);
    expect(await site.observe('booting')).toMatchObject({ state: 'waiting' });
    await site.clock.advance(300_001);
    expect(await site.observe('booting')).toEqual({
      state: 'not-ready',
      waitsFor: 'the guest agent',
      addresses: [],
    });
  });

  it('fails with the machine', async () => {
    expect(await aSite().observe('deleting')).toEqual({ state: 'failed' });
  });
});

describe('loginOf', () => {
  it.each([
    [
      'a private key',
      {},
      { privateKeyPath: '/key' },
      { login: { user: 'ubuntu', privateKeyPath: '/key' } },
    ],
    ['an SSH agent', { SSH_AUTH_SOCK: '/agent' }, {}, { login: { user: 'ubuntu' } }],
    ['neither', {}, {}, { reason: 'ssh.privateKeyFile is not set, and there is no SSH agent' }],
    [
      'no public key',
      { SSH_AUTH_SOCK: '/agent' },
      { publicKeys: [] },
      { reason: 'ssh.publicKeys of the config is empty, so no login is possible' },
    ],
  ])('knows whether a login is possible with %s', (...[, environment, ssh, expected]) => {
    const { host, open } = aSite(environment, ssh);
    expect(loginOf(host, open)).toEqual(expected);
  });
});
