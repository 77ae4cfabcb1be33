// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { checkVmOption } from './vm-options.ts';

describe('vmOptions', () => {
  it.each([
    ['cpu', 'host'],
    ['sockets', 1],
    ['numa', true],
    ['scsi1', 'local-lvm:32,ssd=1'],
    ['hostpci0', 'mapping=gpu,pcie=1'],
    ['usb0', 'spice'],
    ['usb1', 'host=spice,usb3=1'],
    ['usb2', 'mapping=key,usb3=1'],
    ['efidisk0', 'local-lvm:1,efitype=4m'],
    ['serial0', 'socket'],
  ] as const)('passes %s', (name, value) => {
    expect(checkVmOption(name, value).ok).toBe(true);
  });

  it.each([
    ['hostpci0', 'host=0000:01:00.0,mapping=x'],
    ['hostpci0', '0000:01:00,mapping=x'],
    ['hostpci0', 'mapping=x,host=01:00'],
    ['hostpci0', 'mapping=x, HOST=01:00'],
    ['hostpci0', 'mapping=x;01:00'],
    ['hostpci0', 'mapping=x,pcie=1;host=01:00'],
    ['hostpci0', 'spice'],
    ['usb0', 'spice,host=1-2'],
    ['usb0', 'host=1-2,mapping=x'],
  ])('refuses a device of one host: %s: %s', (name, value) => {
    expect(checkVmOption(name, value)).toEqual({
      ok: false,
      problem:
        "names a device of one host; make a resource mapping in Proxmox and write 'mapping=<name>'",
    });
  });

  it.each([
    [
      'args',
      '-device x',
      'is refused: it hands raw arguments to the hypervisor process, which runs as root on the host',
    ],
    ['hookscript', 'local:snippets/x.pl', 'is refused: it runs a script as root on the host'],
    [
      'hostpci0',
      '0000:01:00.0',
      "names a device of one host; make a resource mapping in Proxmox and write 'mapping=<name>'",
    ],
    [
      'hostpci1',
      'host=01:00',
      "names a device of one host; make a resource mapping in Proxmox and write 'mapping=<name>'",
    ],
    [
      'usb1',
      'host=1234:5678',
      "names a device of one host; make a resource mapping in Proxmox and write 'mapping=<name>'",
    ],
    ['scsi1', '/dev/sda', 'contains an absolute path; name a storage volume instead'],
    [
      'scsi1',
      'local:0,import-from=/root/x.img',
      'contains an absolute path; name a storage volume instead',
    ],
    ['serial0', '/dev/ttyS0', 'contains an absolute path; name a storage volume instead'],
    ['cpu', 'host\nargs: x', 'contains a line break'],
    ['cpu', ' ', 'is empty'],
    ['cores', 4, 'is set by pvescaler; the key for it is size.cpu'],
    ['memory', 2048, 'is set by pvescaler; the key for it is size.memory and memoryOverhead'],
    ['net0', 'virtio', 'is set by pvescaler; the key for it is network.interfaces'],
    ['ipconfig0', 'ip=dhcp', 'is set by pvescaler; the key for it is network.ip'],
    ['tags', 'x', 'is set by pvescaler; the key for it is proxmox.<region>.tags'],
    [
      'scsi0',
      'x:1',
      'is set by pvescaler; the key for it is size.disk, disk and proxmox.<region>.storage.disks',
    ],
    ['cicustom', 'user=x', 'is set by pvescaler; the key for it is join.custom.cloudConfigFile'],
    ['protection', 1, 'is refused: a protected VM could not be deleted again'],
    ['sokets', 1, "is no VM option that Proxmox has; did you mean 'sockets'?"],
    ['constructor', 1, 'is no VM option that Proxmox has'],
  ] as const)('refuses %s: %s', (name, value, problem) => {
    expect(checkVmOption(name, value)).toEqual({ ok: false, problem });
  });
});
