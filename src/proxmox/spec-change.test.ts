// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { DiskOptions, VmSpec } from '../ports/hypervisor.ts';
import { computeSpecChange } from './spec-change.ts';

const UUID = '0a1b2c3d-0000-4000-8000-000000000001';
const DISK: DiskOptions = { discard: true, ssd: false, iothread: true, cache: 'none' };

function aSpec(overrides: Partial<VmSpec> = {}): VmSpec {
  return {
    tags: ['ca-group-a', 'pvescaler'],
    smbiosUuid: UUID,
    hardware: {
      cpus: 4,
      memoryBytes: 2 ** 31,
      balloonBytes: 0,
      networks: [{ model: 'virtio', bridge: 'vmbr0', mac: '02:00:00:00:00:01', vlan: 12 }],
      bootFrom: 'disk',
      options: { sockets: '2' },
    },
    disk: DISK,
    hasSeed: true,
    ...overrides,
  };
}

/** What a clone has once its spec was applied. */
const APPLIED = {
  agent: '1',
  sockets: '2',
  cores: '2',
  memory: '2048',
  balloon: '0',
  net0: 'virtio=02:00:00:00:00:01,bridge=vmbr0,tag=12',
};

describe('computeSpecChange', () => {
  it('sets tags, UUID, hardware and networks', () => {
    const config = { tags: ['base'], smbiosUuid: undefined };
    expect(computeSpecChange({ config, options: { memory: '512' } }, aSpec())).toEqual({
      set: { ...APPLIED, tags: 'ca-group-a;pvescaler', smbios1: `uuid=${UUID}` },
      remove: [],
    });
  });

  it('sets one socket if the template has several and the pool does not set them', () => {
    const config = { tags: [], smbiosUuid: undefined };
    const spec = aSpec();
    const one = { ...spec, hardware: { ...spec.hardware, options: {} } };
    const set = (options: Record<string, string>) =>
      computeSpecChange({ config, options }, one).set;
    expect(set({ sockets: '2', cores: '4' })).toMatchObject({ sockets: '1' });
    expect(set({ sockets: '1', cores: '4' })).not.toHaveProperty('sockets');
    expect(set({ cores: '2' })).toMatchObject({ cores: '4' });
    expect(set({ cores: '2' })).not.toHaveProperty('sockets');
  });

  it('removes the inherited limit of plugged CPUs', () => {
    const config = { tags: [], smbiosUuid: undefined };
    const clone = { config, options: { cores: '4', vcpus: '1' } };
    expect(computeSpecChange(clone, aSpec({ hasSeed: false })).remove).toEqual(['vcpus']);
  });

  it('returns no change when only order and case of properties differ', () => {
    const { tags, smbiosUuid } = aSpec();
    const net0 = 'virtio=02:00:00:00:00:01,tag=12,BRIDGE=vmbr0';
    const clone = { config: { tags, smbiosUuid }, options: { ...APPLIED, net0 } };
    expect(computeSpecChange(clone, aSpec())).toEqual({ set: {}, remove: [] });
  });

  it('removes inherited cloud-init drives other than the seed drive, and only if the VM has a seed', () => {
    const options = {
      ide0: 'local-lvm:vm-160-cloudinit,media=cdrom',
      ide2: 'local:160/vm-160-cloudinit.qcow2,media=cdrom',
      scsi1: 'local-lvm:cloudinit',
      scsi2: 'local-lvm:vm-160-disk-1,size=1G',
    };
    const clone = { config: { tags: [], smbiosUuid: undefined }, options };
    expect(computeSpecChange(clone, aSpec()).remove).toEqual(['ide0', 'scsi1']);
    expect(computeSpecChange(clone, aSpec({ hasSeed: false })).remove).toEqual([]);
  });
});

describe('boot disk of a clone', () => {
  const volume = 'local-lvm:vm-1250-disk-0';

  function changedDisk(
    drive: string,
    stored: string,
    { scsihw, ...disk }: Partial<DiskOptions> & { readonly scsihw?: string },
  ) {
    const options = {
      boot: `order=${drive}`,
      [drive]: stored,
      ...(scsihw !== undefined && { scsihw }),
    };
    const config = { tags: [], smbiosUuid: undefined };
    return computeSpecChange({ config, options }, aSpec({ disk: { ...DISK, ...disk } })).set?.[
      drive
    ];
  }

  it('keeps its volume and gets the disk options of the spec', () => {
    const stored = `${volume},cache=unsafe,size=3G,backup=0`;
    const disk = { ssd: true, cache: 'writeback', scsihw: 'virtio-scsi-single' } as const;
    expect(changedDisk('scsi0', stored, disk)).toBe(
      `${volume},size=3G,backup=0,discard=on,ssd=1,iothread=1,cache=writeback`,
    );
  });

  it('is not changed when it has these options already', () => {
    const stored = `${volume},discard=on,iothread=1,size=3G`;
    expect(changedDisk('scsi0', stored, { scsihw: 'virtio-scsi-single' })).toBeUndefined();
  });

  it('gets no I/O thread on a shared controller, and no SSD flag on virtio', () => {
    expect(changedDisk('scsi0', `${volume},size=3G`, { scsihw: 'lsi' })).toBe(
      `${volume},size=3G,discard=on`,
    );
    expect(changedDisk('virtio0', `${volume},size=3G`, { ssd: true, discard: false })).toBe(
      `${volume},size=3G,iothread=1`,
    );
  });
});
