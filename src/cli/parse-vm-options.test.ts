// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { loadText } from '../config/testing/load-text.ts';
import { parseVmOptions, type VmOptions } from './parse-vm-options.ts';

const GIB = 2 ** 30;
const IMAGE = '{ url: https://images.example/noble.img, unverified: true }';
const CONFIG = `
apiVersion: pvescaler.dev/v1alpha1
proxmox:
  lab:
    endpoints: ["https://pve1:8006"]
    token: { id: "scaler@pve!sim", secretFile: /token }
    vmIds: 1250-1300
images: { noble: ${IMAGE} }
`;
const HOSTS = [
  { region: 'lab', host: 'pve1' },
  { region: 'lab', host: 'pve2' },
];

/** Options as commander passes them: `--memory 4Gi` is `{ memory: '4Gi' }`. */
function optionsOf(text: string): VmOptions {
  const words = text.split(' ').filter((word) => word !== '');
  const pairs = words.flatMap((word, at) =>
    word.startsWith('--') ? [[word.slice(2), words[at + 1] ?? '']] : [],
  );
  const given = Object.fromEntries(pairs) as Partial<VmOptions>;
  return { role: 'worker', network: 'dhcp', count: '1', reason: 'test', ...given };
}

function parse(text: string, config = CONFIG) {
  const loaded = loadText(config);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return parseVmOptions(loaded.config, optionsOf(text), HOSTS);
}

describe('parseVmOptions', () => {
  it('uses the sizes of the plan unless the config has others', () => {
    expect(parse('').size).toEqual({ cpu: 1, memoryBytes: 2 * GIB, diskBytes: 20 * GIB });
    expect(parse('--size large').size).toEqual({
      cpu: 4,
      memoryBytes: 8 * GIB,
      diskBytes: 80 * GIB,
    });
    const own = `${CONFIG}sizes: { large: { cpu: 9, memory: 1Gi, disk: 9Gi } }\n`;
    expect(parse('--size large', own).size.cpu).toBe(9);
  });

  it('takes plain numbers as MB of memory and GB of disk', () => {
    const { size } = parse('--cpus 3 --memory 4096 --disk 40');
    expect(size).toEqual({ cpu: 3, memoryBytes: 4 * GIB, diskBytes: 40 * GIB });
    expect(parse('--memory 4Gi --disk 40Gi').size).toMatchObject({
      memoryBytes: 4 * GIB,
      diskBytes: 40 * GIB,
    });
  });

  it('passes address, host, id and strategy of the request', () => {
    const static_ = '--network static --ip 10.0.0.5/24 --gateway 10.0.0.1 --dns 10.0.0.1,10.0.0.2';
    const request = parse(`${static_} --vmid 300 --host pve2 --strategy pack`);
    expect(request).toMatchObject({
      host: { region: 'lab', host: 'pve2' },
      vm: {
        from: { kind: 'image', image: 'noble' },
        regions: ['lab'],
        vmId: 300,
        strategy: 'pack',
        network: {
          kind: 'static',
          address: '10.0.0.5/24',
          gateway: '10.0.0.1',
          dns: ['10.0.0.1', '10.0.0.2'],
        },
      },
    });
    expect(parse('').vm).toEqual({ from: { kind: 'image', image: 'noble' } });
    expect(parse('--network static --ip fd00::5/64').vm.network).toMatchObject({
      address: 'fd00::5/64',
    });
    expect(parse('--network static --ip fd00::5/64 --gateway fe80::1').vm.network).toMatchObject({
      gateway: 'fe80::1',
    });
    // The guest reaches it on the link, because it is in no subnet of its own.
    expect(
      parse('--network static --ip 203.0.113.7/32 --gateway 10.0.0.1').vm.network,
    ).toMatchObject({ gateway: '10.0.0.1' });
  });

  it('prefers the only template to its image, and names the sources when there are several', () => {
    const one = `${CONFIG}templates: { base: { name: base, image: noble } }\n`;
    expect(parse('', one).vm.from).toEqual({ kind: 'template', template: 'base', clone: 'full' });
    expect(parse('--clone linked', one).vm.from).toMatchObject({ clone: 'linked' });
    expect(parse('--from image', one).vm.from).toEqual({ kind: 'image', image: 'noble' });
    const two = `${CONFIG}templates: { base: { name: base }, other: { name: other } }\n`;
    expect(() => parse('', two)).toThrow(/template:base, template:other, image:noble/);
    expect(parse('--from template:other', two).vm.from).toMatchObject({ template: 'other' });
    expect(parse('--from netboot', two).vm.from).toEqual({ kind: 'netboot' });
  });

  it.each<readonly [string, RegExp]>([
    ['--size huge', /--size huge: there is no such size; use small, medium, large/],
    ['--cpus 0', /--cpus 0 is not a whole number from 1/],
    ['--memory lots', /--memory lots/],
    ['--disk 0', /--disk 0/],
    ['--network static', /--network static needs --ip/],
    ['--ip 10.0.0.5/24', /--ip needs --network static/],
    ['--network static --ip 10.0.0.5', /prefix length/],
    ['--network static --ip 10.0.0.500/24', /not an IP address/],
    ['--network static --ip 10.0.0.5/24 --gateway x', /--gateway x is not an IP address/],
    [
      '--network static --ip 10.0.0.5/24 --gateway 10.0.1.1',
      /--gateway 10.0.1.1 is not in the subnet of --ip 10.0.0.5\/24/,
    ],
    ['--network static --ip 10.0.0.5/24 --gateway fd00::1', /is not in the subnet/],
    ['--network static --ip 10.0.0.5/32 --gateway fd00::1', /is not in the subnet/],
    ['--network static --ip 10.0.0.5/24 --gateway 10.0.0.5', /is the address of the VM/],
    ['--network static --ip 10.0.0.0/24', /--ip 10.0.0.0\/24 is the network or broadcast address/],
    ['--count 2 --vmid 300', /--vmid is for one VM, not for 2/],
    ['--vmid 5', /--vmid 5 is not a whole number from 100/],
    ['--host pve9', /--host pve9: there is no such host; there are pve1, pve2/],
    ['--region moon', /--region moon: the config has lab/],
    ['--from disk', /--from disk is none of image, template and netboot/],
    ['--from image:other', /the config has no image other: image:noble/],
    ['--from template', /the config has no template/],
    ['--clone linked', /--clone needs a template/],
    ['--role template', /--role template is for pvescaler template build/],
    ['--role No', /--role 'No' is not a DNS label/],
  ])('refuses %s', (options, message) => {
    expect(() => parse(options)).toThrow(message);
  });
});
