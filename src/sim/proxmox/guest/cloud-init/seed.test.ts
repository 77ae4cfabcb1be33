// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { buildSeedIso, createGuestHarness, MAC } from '../testing/guest-harness.ts';
import { buildTestIso } from '../testing/test-iso.ts';

async function bootWithNetworkConfig(networkConfig: string) {
  const harness = createGuestHarness({ seedIso: buildSeedIso({ networkConfig }) });
  await harness.boot();
  return harness.guest.report();
}

describe('the cloud-init seed disk', () => {
  it.each([
    [
      'label',
      buildTestIso({ label: 'config-2', files: { 'meta-data': '', 'user-data': '' } }),
      "label 'config-2' is not cidata",
    ],
    [
      'files',
      buildTestIso({ files: { 'user-data': '#cloud-config' }, joliet: true }),
      'no file meta-data',
    ],
    ['user-data', buildTestIso({ files: { 'meta-data': '' }, joliet: true }), 'no file user-data'],
    ['image', new Uint8Array(100), 'truncated'],
  ])('is ignored with an error when the %s is wrong', async (_, seedIso, problem) => {
    const harness = createGuestHarness({ seedIso });
    await harness.boot();
    const report = harness.guest.report();
    expect(report.errors).toHaveLength(1);
    expect(report.errors[0]).toContain(problem);
    expect(report).toMatchObject({ hostname: 'ubuntu', instanceId: undefined, phase: 'running' });
    expect(report.network[0]?.addresses).toEqual(['10.0.0.50/24']);
    expect(report.users.map((user) => user.name)).toEqual(['root']);
  });

  it('can have its label in capitals', async () => {
    const files = { 'meta-data': 'instance-id: up\n', 'user-data': '#cloud-config\n' };
    const harness = createGuestHarness({
      seedIso: buildTestIso({ label: 'CIDATA', files, joliet: true }),
    });
    await harness.boot();
    expect(harness.guest.report().instanceId).toBe('up');
  });

  it('reports unreadable documents, and the boot continues', async () => {
    const harness = createGuestHarness({
      seedIso: buildSeedIso({ metaData: 'a: [', networkConfig: 'b: [' }),
    });
    await harness.boot();
    expect(harness.guest.report().errors).toHaveLength(2);
    expect(harness.guest.report().instanceId).toBe('iid-datasource-nocloud');
  });
});

describe('cloud-init network-config', () => {
  it('version 2 sets address, route, name and resolvers by MAC', async () => {
    const report = await bootWithNetworkConfig(`network:
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
      'of version 2 matches by name pattern',
      'version: 2\nethernets: {all: {match: {name: "en*"}, dhcp4: true}}',
      ['10.0.0.50/24'],
    ],
    [
      'of version 2 matches by id',
      'version: 2\nethernets: {ens18: {dhcp4: yes, gateway4: 10.0.0.1}}',
      ['10.0.0.50/24'],
    ],
    [
      'of version 2 does not apply to another card',
      'version: 2\nethernets: {x: {match: {macaddress: "02:00:00:00:00:01"}, dhcp4: true}}',
      [],
    ],
    [
      'of version 1 sets a static address',
      'version: 1\nconfig: [{type: physical, name: ens18, subnets: [{type: static, address: 10.1.1.2, netmask: 255.255.255.0, gateway: 10.1.1.1}]}]',
      ['10.1.1.2/24'],
    ],
    ['without a version falls back to DHCP', 'ethernets: {}', ['10.0.0.50/24']],
  ])('%s', async (_, text, addresses) => {
    expect((await bootWithNetworkConfig(text)).network[0]?.addresses).toEqual(addresses);
  });

  it('warns about entries that are not simulated', async () => {
    expect((await bootWithNetworkConfig('version: 2\nbonds: {}\n')).warnings).toEqual([
      'network-config: bonds are not simulated',
    ]);
    expect((await bootWithNetworkConfig('version: 1\nconfig: [{type: bond}]\n')).warnings).toEqual([
      'network-config: type bond is not simulated',
    ]);
    expect((await bootWithNetworkConfig('version: 9\n')).warnings).toEqual([
      'network-config: unknown version',
    ]);
  });
});

describe('the cloud-init drive of Proxmox', () => {
  const options = {
    name: 'vm-7',
    ciuser: 'admin',
    sshkeys: encodeURIComponent('ssh-ed25519 AAAA one\nssh-rsa BBBB two\n'),
    ipconfig0: 'ip=10.1.1.5/24,gw=10.1.1.1,ip6=auto',
    nameserver: '10.1.1.1 1.1.1.1',
    searchdomain: 'lab.example',
  };

  it('configures the guest', async () => {
    const harness = createGuestHarness({ cloudInitDrive: options });
    await harness.boot();
    const report = harness.guest.report();
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

  it('has a new instance id after each change of an option', async () => {
    const idOf = async (cloudInitDrive: Record<string, string>) => {
      const harness = createGuestHarness({ cloudInitDrive });
      await harness.boot();
      return harness.guest.report().instanceId;
    };
    expect(await idOf(options)).toBe(await idOf({ ...options }));
    expect(await idOf(options)).not.toBe(await idOf({ ...options, ciuser: 'other' }));
  });

  it('leaves a card without ipconfig down and uses DHCP with ip=dhcp', async () => {
    const none = createGuestHarness({ cloudInitDrive: { name: 'a', sshkeys: '%zz' } });
    await none.boot();
    expect(none.guest.report().network[0]?.addresses).toEqual([]);
    const leased = createGuestHarness({
      cloudInitDrive: { name: 'a', ipconfig0: 'ip=dhcp,ip6=fd00::2/64', ciupgrade: '0' },
    });
    await leased.boot();
    expect(leased.guest.report().network[0]?.addresses).toEqual(['fd00::2/64', '10.0.0.50/24']);
  });

  it('is ignored when there is a seed disk', async () => {
    const harness = createGuestHarness({ cloudInitDrive: options, seedIso: buildSeedIso() });
    await harness.boot();
    expect(harness.guest.report().hostname).toBe('worker-1');
  });
});
