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
    ['scsi2', 'file=local-lvm:8,iothread=1'],
    ['sata1', 'local:iso/drivers.iso,media=cdrom'],
    ['hostpci1', 'mapping=gpu,romfile=vbios.bin'],
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
  ])('refuses the device of a single host: %s: %s', (name, value) => {
    expect(checkVmOption(name, value)).toEqual({
      ok: false,
      problem:
        "names a device of one host; create a resource mapping in Proxmox and write 'mapping=<name>'",
    });
  });

  it.each([
    ['scsi1', 'local-lvm:vm-100-disk-0'],
    ['scsi1', 'local-lvm:vm-100-disk-0,size=32G'],
    ['sata2', 'iothread=1,file=local-lvm:vm-100-disk-0'],
    ['virtio3', 'volume=local:100/vm-100-disk-0.qcow2'],
    ['virtio3', 'local:100/vm-100-disk-0.qcow2,media=cdrom'],
    ['efidisk0', 'local-lvm:base-9000-disk-1'],
  ])('refuses a volume that may belong to another VM: %s: %s', (name, value) => {
    expect(checkVmOption(name, value)).toMatchObject({
      ok: false,
      problem: expect.stringContaining('names an existing volume') as unknown,
    });
  });

  it.each([
    [
      'args',
      '-device x',
      'is not allowed: it passes raw arguments to the hypervisor process, which runs as root on the host',
    ],
    ['hookscript', 'local:snippets/x.pl', 'is not allowed: it runs a script as root on the host'],
    [
      'hostpci0',
      '0000:01:00.0',
      "names a device of one host; create a resource mapping in Proxmox and write 'mapping=<name>'",
    ],
    [
      'hostpci1',
      'host=01:00',
      "names a device of one host; create a resource mapping in Proxmox and write 'mapping=<name>'",
    ],
    [
      'usb1',
      'host=1234:5678',
      "names a device of one host; create a resource mapping in Proxmox and write 'mapping=<name>'",
    ],
    ['scsi1', '/dev/sda', 'must not contain an absolute path; use a storage volume instead'],
    [
      'scsi1',
      'local:0,import-from=/root/x.img',
      'must not contain an absolute path; use a storage volume instead',
    ],
    ['serial0', '/dev/ttyS0', 'must not contain an absolute path; use a storage volume instead'],
    ['hostpci0', 'mapping=gpu,romfile=../../x', "must not contain '.' or '..' as a folder"],
    ['scsi1', 'local:../../x', "must not contain '.' or '..' as a folder"],
    ['cpu', 'host\nargs: x', 'contains a line break'],
    ['cpu', ' ', 'is empty'],
    ['cores', 4, 'is set by pvescaler from size.cpu; remove it'],
    ['memory', 2048, 'is set by pvescaler from size.memory and memoryOverhead; remove it'],
    ['net0', 'virtio', 'is set by pvescaler from network.interfaces; remove it'],
    ['ipconfig0', 'ip=dhcp', 'is set by pvescaler from network.ip; remove it'],
    ['tags', 'x', 'is set by pvescaler from proxmox.<region>.tags; remove it'],
    [
      'scsi0',
      'x:1',
      'is set by pvescaler from size.disk, disk and proxmox.<region>.storage.disks; remove it',
    ],
    ['cicustom', 'user=x', 'is set by pvescaler from join.custom.cloudConfigFile; remove it'],
    ['protection', 1, 'is not allowed: a protected VM cannot be deleted'],
    ['sokets', 1, "is not a Proxmox VM option; did you mean 'sockets'?"],
    ['constructor', 1, 'is not a Proxmox VM option'],
  ] as const)('refuses %s: %s', (name, value, problem) => {
    expect(checkVmOption(name, value)).toEqual({ ok: false, problem });
  });
});
