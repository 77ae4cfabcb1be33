// SPDX-License-Identifier: Apache-2.0
// A clone has the options of its template. This computes the change that brings it to its own specification.
import type { DiskOptions, VmConfig, VmSpec } from '../ports/hypervisor.ts';
import { bootDriveOf, cloudInitDrivesOf, SEED_DRIVE, type VmOptions } from './drives.ts';
import { coresOf, mebibytes, networkOptions, type OptionChange } from './vm-options.ts';

interface Clone {
  readonly config: Pick<VmConfig, 'tags' | 'smbiosUuid'>;
  readonly options: VmOptions;
}

/** Contains only what differs. */
export function specChange({ config, options }: Clone, spec: VmSpec): OptionChange {
  const wanted = wantedOptions(options, spec);
  const differing = Object.entries(wanted).filter(
    ([name, value]) => !isSameOption(options[name], value),
  );
  return {
    set: {
      ...Object.fromEntries(differing),
      ...(config.smbiosUuid !== spec.smbiosUuid && { smbios1: `uuid=${spec.smbiosUuid}` }),
      ...(config.tags.join() !== spec.tags.join() && { tags: spec.tags.join(';') }),
    },
    remove: spec.hasSeed ? inheritedSeedDrives(options) : [],
  };
}

function wantedOptions(options: VmOptions, { hardware, disk }: VmSpec): VmOptions {
  const drive = bootDriveOf(options);
  const stored = options[drive ?? ''];
  const controller = hardware.options['scsihw'] ?? options['scsihw'];
  return {
    ...hardware.options,
    agent: hardware.options['agent'] ?? '1',
    cores: String(coresOf(hardware)),
    memory: String(mebibytes(hardware.memoryBytes)),
    balloon: String(mebibytes(hardware.balloonBytes)),
    ...networkOptions(hardware.networks),
    ...(drive !== undefined &&
      stored !== undefined && { [drive]: diskOption(stored, disk, featuresOf(drive, controller)) }),
  };
}

/** Attaching the seed replaces a cloud-init drive in the seed's own place. */
function inheritedSeedDrives(options: VmOptions): readonly string[] {
  return cloudInitDrivesOf(options).filter((drive) => drive !== SEED_DRIVE);
}

interface DriveFeatures {
  readonly ssd: boolean;
  readonly iothread: boolean;
}

/** The same volume with other disk options. */
function diskOption(stored: string, disk: DiskOptions, features: DriveFeatures): string {
  const [volume = '', ...parts] = stored.split(',');
  const kept = parts.filter((part) => !/^(discard|ssd|iothread|cache)=/.test(part));
  return [
    volume,
    ...kept,
    ...(disk.discard ? ['discard=on'] : []),
    ...(disk.ssd && features.ssd ? ['ssd=1'] : []),
    ...(disk.iothread && features.iothread ? ['iothread=1'] : []),
    ...(disk.cache === 'none' ? [] : [`cache=${disk.cache}`]),
  ].join(',');
}

/** I/O threads need one controller per disk; virtio disks have no SSD flag. */
function featuresOf(drive: string, controller: string | undefined): DriveFeatures {
  const isVirtio = drive.startsWith('virtio');
  const hasOwnController = drive.startsWith('scsi') && controller === 'virtio-scsi-single';
  return { ssd: !isVirtio, iothread: isVirtio || hasOwnController };
}

/** Proxmox keeps the parts of a property string, not their order or case. */
function isSameOption(stored: string | undefined, wanted: string): boolean {
  const parts = (text: string) => text.toLowerCase().split(',').sort().join();
  return stored !== undefined && parts(stored) === parts(wanted);
}
