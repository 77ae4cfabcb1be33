// SPDX-License-Identifier: Apache-2.0
// The CLI with `transport: ssh`, on the SSH servers of the simulator: processes and sockets, as a user runs them.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aLab, type SimulatedSshHost } from '../support/lab.ts';
import { aFolder } from '../support/pvescaler.ts';

interface MachineJson {
  readonly phase: string;
  readonly placement: { readonly host: string };
}

const pinned = (hosts: readonly SimulatedSshHost[]) =>
  `hostKeys: [${hosts.map(({ fingerprint }) => `"${fingerprint}"`).join(', ')}]`;

describe('transport ssh', () => {
  it('scales a pool up and down over both hosts, and leaves nothing behind', async () => {
    const { run, request } = await aLab({ ssh: pinned });
    const up = run('pool', 'scale', 'workers', '--to', '3');
    expect(up).toMatchObject({ exitCode: 0, out: 'pool workers has 3 machines\n' });
    const machines = JSON.parse(run('machines', '--json').out) as readonly MachineJson[];
    expect(machines.map(({ phase }) => phase)).toEqual(['ready', 'ready', 'ready']);
    expect(new Set(machines.map(({ placement }) => placement.host)).size).toBe(2);
    const down = run('pool', 'scale', 'workers', '--to', '0');
    expect(down).toMatchObject({ exitCode: 0, out: 'pool workers has 0 machines\n' });
    expect(run('orphans')).toMatchObject({ exitCode: 0, out: 'no orphans\n' });
    const { data } = await request('GET', '/cluster/resources?type=vm');
    expect(data).toEqual([]);
    const seeds = await request('GET', '/nodes/pve1/storage/seeds/content');
    expect(seeds.data).toEqual([]);
  });

  it('is examined by doctor, which prints the fingerprint of an unknown host', async () => {
    const fine = await aLab({ ssh: pinned });
    const { exitCode, out } = fine.run('doctor', '--all');
    expect(out).toMatch(/\n {2}ok {7}host-key 127\.0\.0\.1:\d+: is one of hostKeys\n/);
    expect(out).toMatch(/\nregion lab, host pve2\n {2}ok /);
    expect([out.split('\n').at(-2), exitCode]).toEqual([
      expect.stringMatching(/^\d+ checks, 0 failed, 0 with warnings$/),
      0,
    ]);
    const folder = aFolder();
    const unknown = await aLab({ ssh: () => `knownHosts: ${folder}/known_hosts` });
    const refused = unknown.run('config', 'validate', '--online');
    expect(refused.exitCode).toBe(2);
    for (const { fingerprint } of unknown.sshHosts) expect(refused.out).toContain(fingerprint);
    expect(existsSync(join(folder, 'known_hosts'))).toBe(false);
  });

  it('refuses an unknown host without a terminal, with its fingerprint and what to do', async () => {
    const folder = aFolder();
    const { run, sshHosts } = await aLab({ ssh: () => `knownHosts: ${folder}/known_hosts` });
    const { exitCode, err } = run('orphans');
    expect(exitCode).not.toBe(0);
    expect(sshHosts.some(({ fingerprint }) => err.includes(fingerprint))).toBe(true);
    expect(err).toContain('ssh-keyscan -p');
  });

  it('trusts the hosts of a known hosts file', async () => {
    const folder = aFolder();
    const knownHosts = join(folder, 'known_hosts');
    const { run } = await aLab({
      ssh: (hosts) => {
        const lines = hosts.map(({ address, key }) => `[${address.replace(':', ']:')} ${key}\n`);
        writeFileSync(knownHosts, lines.join(''));
        return `knownHosts: ${knownHosts}`;
      },
    });
    expect(run('orphans')).toMatchObject({ exitCode: 0, out: 'no orphans\n' });
  });
});
