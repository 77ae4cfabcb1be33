// SPDX-License-Identifier: Apache-2.0
// A clone has the options of its template. This computes the change that makes it match its spec.
import type { DiskOptions, VmConfig, VmSpec } from '../ports/hypervisor.ts';
import { findBootDrive, findCloudInitDrives, SEED_DRIVE, type VmOptions } from './vm-config.ts';
import { coresPerSocket, formatNetworks, type OptionChange, toMebibytes } from './vm-options.ts';

interface Clone {
  readonly config: Pick<VmConfig, 'tags' | 'smbiosUuid'>;
  readonly options: VmOptions;
}

/** Returns only the options that differ. */
export function computeSpecChange({ config, options }: Clone, spec: VmSpec): OptionChange {
  const desired = desiredOptions(options, spec);
  const differing = Object.entries(desired).filter(
    ([name, value]) => !isEqualOption(options[name], value),
  );
  return {
    set: {
      ...Object.fromEntries(differing),
      ...(config.smbiosUuid !== spec.smbiosUuid && { smbios1: `uuid=${spec.smbiosUuid}` }),
      ...(config.tags.join() !== spec.tags.join() && { tags: spec.tags.join(';') }),
    },
    remove: [
      // It limits how many of the cores are plugged in.
      ...(options['vcpus'] === undefined ? [] : ['vcpus']),
      ...(spec.hasSeed ? findInheritedSeedDrives(options) : []),
    ],
  };
}

function desiredOptions(options: VmOptions, { hardware, disk }: VmSpec): VmOptions {
  const drive = findBootDrive(options);
  const stored = options[drive ?? ''];
  const controller = hardware.options['scsihw'] ?? options['scsihw'];
  return {
    // Without it the CPUs would be multiplied by the sockets of the template.
    ...(options['sockets'] !== undefined && { sockets: '1' }),
    ...hardware.options,
    agent: hardware.options['agent'] ?? '1',
    cores: String(coresPerSocket(hardware)),
    memory: String(toMebibytes(hardware.memoryBytes)),
    balloon: String(toMebibytes(hardware.balloonBytes)),
    ...formatNetworks(hardware.networks),
    ...(drive !== undefined &&
      stored !== undefined && {
        [drive]: formatDrive(stored, disk, supportedFeatures(drive, controller)),
      }),
  };
}

/** Excludes the drive of the seed: attaching the seed replaces its content. */
function findInheritedSeedDrives(options: VmOptions): readonly string[] {
  return findCloudInitDrives(options).filter((drive) => drive !== SEED_DRIVE);
}

interface DriveFeatures {
  readonly ssd: boolean;
  readonly iothread: boolean;
}

/** Keeps the volume and replaces the disk options. */
function formatDrive(stored: string, disk: DiskOptions, features: DriveFeatures): string {
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

/** I/O threads need one controller per disk; virtio disks have no `ssd` flag. */
function supportedFeatures(drive: string, controller: string | undefined): DriveFeatures {
  const isVirtio = drive.startsWith('virtio');
  const hasOwnController = drive.startsWith('scsi') && controller === 'virtio-scsi-single';
  return { ssd: !isVirtio, iothread: isVirtio || hasOwnController };
}

/** Proxmox may return the parts of a property string in another order and case. */
function isEqualOption(stored: string | undefined, desired: string): boolean {
  const parts = (text: string) => text.toLowerCase().split(',').sort().join();
  return stored !== undefined && parts(stored) === parts(desired);
}
