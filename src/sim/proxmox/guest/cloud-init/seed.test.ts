// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aGuest, aSeed, MAC } from '../testing/a-guest.ts';
import { tinyIso } from '../testing/tiny-iso.ts';

async function networkOf(networkConfig: string) {
  const bench = aGuest({ seedIso: aSeed({ networkConfig }) });
  await bench.boot();
  return bench.guest.report();
}

describe('the seed disk', () => {
  it.each([
    [
      'label',
      tinyIso({ label: 'config-2', files: { 'meta-data': '', 'user-data': '' } }),
      "label 'config-2' is not cidata",
    ],
    [
      'files',
      tinyIso({ files: { 'user-data': '#cloud-config' }, joliet: true }),
      'no file meta-data',
    ],
    ['user-data', tinyIso({ files: { 'meta-data': '' }, joliet: true }), 'no file user-data'],
    ['image', new Uint8Array(100), 'truncated'],
  ])('is none when its %s is wrong', async (_, seedIso, problem) => {
    const bench = aGuest({ seedIso });
    await bench.boot();
    const report = bench.guest.report();
    expect(report.errors).toHaveLength(1);
    expect(report.errors[0]).toContain(problem);
    expect(report).toMatchObject({ hostname: 'ubuntu', instanceId: undefined, phase: 'running' });
    expect(report.network[0]?.addresses).toEqual(['10.0.0.50/24']);
    expect(report.users.map((user) => user.name)).toEqual(['root']);
  });

  it('is the one with the label in capitals, too', async () => {
    const files = { 'meta-data': 'instance-id: up\n', 'user-data': '#cloud-config\n' };
    const bench = aGuest({ seedIso: tinyIso({ label: 'CIDATA', files, joliet: true }) });
    await bench.boot();
    expect(bench.guest.report().instanceId).toBe('up');
  });

  it('says when its documents cannot be read, and goes on', async () => {
    const bench = aGuest({ seedIso: aSeed({ metaData: 'a: [', networkConfig: 'b: [' }) });
    await bench.boot();
    expect(bench.guest.report().errors).toHaveLength(2);
    expect(bench.guest.report().instanceId).toBe('iid-datasource-nocloud');
  });
});

describe('network-config', () => {
  it('version 2: fixed address, route, name and resolvers, by MAC', async () => {
    const report = await networkOf(`network:
  version: 2
  ethernets:
    nic0:
      match: {macaddress: "${MAC.toLowerCase()}"}
      set-name: eth0
      addresses: [10.10.10.11/24, {"10.10.10.12/24": {label: x}}]
      routes: [{to: default, via: 10.10.10.1}]
      nameservers: {addresses: [10.10.10.1, 1.1.1.1], search: [lab]}
`);
    expect(report.network).toEqual([
      {
        slot: 'net0',
        name: 'eth0',
        mac: MAC.toLowerCase(),
        addresses: ['10.10.10.11/24', '10.10.10.12/24'],
        gateway: '10.10.10.1',
        nameservers: ['10.10.10.1', '1.1.1.1'],
        searchDomains: ['lab'],
      },
    ]);
  });

  it.each([
    [
      'by pattern',
      'version: 2\nethernets: {all: {match: {name: "en*"}, dhcp4: true}}',
      ['10.0.0.50/24'],
    ],
    ['by id', 'version: 2\nethernets: {ens18: {dhcp4: yes, gateway4: 10.0.0.1}}', ['10.0.0.50/24']],
    [
      'for another card',
      'version: 2\nethernets: {x: {match: {macaddress: "02:00:00:00:00:01"}, dhcp4: true}}',
      [],
    ],
    [
      'version 1',
      'version: 1\nconfig: [{type: physical, name: ens18, subnets: [{type: static, address: 10.1.1.2, netmask: 255.255.255.0, gateway: 10.1.1.1}]}]',
      ['10.1.1.2/24'],
    ],
    ['of no version', 'ethernets: {}', ['10.0.0.50/24']],
  ])('%s', async (_, text, addresses) => {
    expect((await networkOf(text)).network[0]?.addresses).toEqual(addresses);
  });

  it('warns about what is not modelled', async () => {
    expect((await networkOf('version: 2\nbonds: {}\n')).warnings).toEqual([
      'network-config: bonds are not modelled',
    ]);
    expect((await networkOf('version: 1\nconfig: [{type: bond}]\n')).warnings).toEqual([
      'network-config: type bond is not modelled',
    ]);
    expect((await networkOf('version: 9\n')).warnings).toEqual(['network-config: unknown version']);
  });
});

describe("Proxmox's own drive", () => {
  const options = {
    name: 'vm-7',
    ciuser: 'admin',
    sshkeys: encodeURIComponent('ssh-ed25519 AAAA one\nssh-rsa BBBB two\n'),
    ipconfig0: 'ip=10.1.1.5/24,gw=10.1.1.1,ip6=auto',
    nameserver: '10.1.1.1 1.1.1.1',
    searchdomain: 'lab.example',
  };

  it('configures the guest', async () => {
    const bench = aGuest({ cloudInitDrive: options });
    await bench.boot();
    const report = bench.guest.report();
    expect(report).toMatchObject({ hostname: 'vm-7', errors: [], warnings: [] });
    expect(report.users[1]).toMatchObject({
      name: 'admin',
      authorizedKeys: ['ssh-ed25519 AAAA one', 'ssh-rsa BBBB two'],
    });
    expect(report.network[0]).toMatchObject({
      name: 'eth0',
      addresses: ['10.1.1.5/24'],
      gateway: '10.1.1.1',
      nameservers: ['10.1.1.1', '1.1.1.1'],
      searchDomains: ['lab.example'],
    });
    expect(report.files['/etc/hosts']?.content).toContain('vm-7.lab.example vm-7');
  });

  it('is a new instance after each change of an option', async () => {
    const idOf = async (cloudInitDrive: Record<string, string>) => {
      const bench = aGuest({ cloudInitDrive });
      await bench.boot();
      return bench.guest.report().instanceId;
    };
    expect(await idOf(options)).toBe(await idOf({ ...options }));
    expect(await idOf(options)).not.toBe(await idOf({ ...options, ciuser: 'other' }));
  });

  it('leaves a card without ipconfig down, and takes leases where told to', async () => {
    const none = aGuest({ cloudInitDrive: { name: 'a', sshkeys: '%zz' } });
    await none.boot();
    expect(none.guest.report().network[0]?.addresses).toEqual([]);
    const leased = aGuest({
      cloudInitDrive: { name: 'a', ipconfig0: 'ip=dhcp,ip6=fd00::2/64', ciupgrade: '0' },
    });
    await leased.boot();
    expect(leased.guest.report().network[0]?.addresses).toEqual(['fd00::2/64', '10.0.0.50/24']);
  });

  it('stands back behind a seed disk', async () => {
    const bench = aGuest({ cloudInitDrive: options, seedIso: aSeed() });
    await bench.boot();
    expect(bench.guest.report().hostname).toBe('worker-1');
  });
});
