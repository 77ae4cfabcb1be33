// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aMachine } from '../../ports/fakes/sample-records.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import { aPool, aRegion } from '../testing/settings.ts';
import { cloneChanges } from './clone-options.ts';

type Disk = ReturnType<typeof aPool>['disk'];

function diskOf(
  slot: string,
  stored: string,
  { scsihw, ...disk }: Partial<Disk> & { readonly scsihw?: string },
) {
  const pool = aPool({ disk: { ...aPool().disk, ...disk } });
  const options = {
    boot: `order=${slot}`,
    [slot]: stored,
    ...(scsihw !== undefined && { scsihw }),
  };
  const config = { vmId: 1_250, tags: [], options } as unknown as VmConfig;
  return cloneChanges(config, aMachine(), { pool, region: aRegion() })[slot];
}

describe('the disk of a clone', () => {
  const volume = 'local-lvm:vm-1250-disk-0';

  it('stays the same volume and is attached as the pool wants it', () => {
    const stored = `${volume},cache=unsafe,size=3G,backup=0`;
    const disk = { ssd: true, cache: 'writeback', scsihw: 'virtio-scsi-single' } as const;
    expect(diskOf('scsi0', stored, disk)).toBe(
      `${volume},size=3G,backup=0,discard=on,ssd=1,iothread=1,cache=writeback`,
    );
  });

  it('is not written to when it is so already', () => {
    const stored = `${volume},discard=on,iothread=1,size=3G`;
    expect(diskOf('scsi0', stored, { scsihw: 'virtio-scsi-single' })).toBeUndefined();
  });

  it('gets no thread from a controller that has none, and a virtio disk is no SSD', () => {
    expect(diskOf('scsi0', `${volume},size=3G`, { scsihw: 'lsi' })).toBe(
      `${volume},size=3G,discard=on`,
    );
    expect(diskOf('virtio0', `${volume},size=3G`, { ssd: true, discard: false })).toBe(
      `${volume},size=3G,iothread=1`,
    );
  });
});
