// SPDX-License-Identifier: Apache-2.0
// VM ids. The ranges of two regions must not overlap, even for two Proxmox clusters: a shared storage or
// backup server identifies disks and backups by VM id only, so one cluster would overwrite the data of the
// other.
import { errorAt, type Finding, warningAt } from '../issues/finding.ts';
import type { ConfigFile } from '../schema/index.ts';
import { quoteKey } from '../secrets/detect-secret.ts';
import {
  parseVmIdRange,
  type VmIdRange,
  vmIdCount,
  vmIdRangesOverlap,
} from '../values/vm-id-range.ts';

interface RegionRange {
  readonly name: string;
  readonly range: VmIdRange;
}

export function checkVmIds(file: ConfigFile): readonly Finding[] {
  const ranges = Object.entries(file.proxmox).flatMap(([name, { vmIds }]) => {
    const parsed = parseVmIdRange(vmIds);
    return parsed.ok ? [{ name, range: parsed.value }] : [];
  });
  return [
    ...checkRangeOverlaps(ranges),
    ...ranges.flatMap((region) => checkTemplateIds(file, region)),
    ...ranges.flatMap((region) => checkIdCount(file, region)),
  ];
}

function checkRangeOverlaps(ranges: readonly RegionRange[]): readonly Finding[] {
  return ranges.flatMap(({ name, range }, index) =>
    ranges
      .slice(0, index)
      .filter((other) => vmIdRangesOverlap(other.range, range))
      .map((other) =>
        errorAt(
          ['proxmox', name, 'vmIds'],
          `VM ids ${range.from}-${range.to} overlap ${other.range.from}-${other.range.to} of region ${quoteKey(other.name)}; use a separate range for each region`,
        ),
      ),
  );
}

function checkTemplateIds(file: ConfigFile, { name, range }: RegionRange): readonly Finding[] {
  return Object.entries(file.templates).flatMap(([key, { id }]) => {
    const ids =
      typeof id === 'object'
        ? Object.entries(id).map(([host, value]) => ({
            value,
            path: ['templates', key, 'id', host],
          }))
        : [{ value: id, path: ['templates', key, 'id'] }];
    return ids.flatMap(({ value, path }) =>
      value !== undefined && value >= range.from && value <= range.to
        ? [
            errorAt(
              path,
              `VM id ${value} is in the vmIds range of region ${quoteKey(name)}, which is reserved for machines`,
            ),
          ]
        : [],
    );
  });
}

/** Only a warning: the pools work, but they cannot all reach their maximum at the same time. */
function checkIdCount(file: ConfigFile, { name, range }: RegionRange): readonly Finding[] {
  const maxMachines = file.pools
    .filter(({ regions }) => regions?.length === 1 && regions[0] === name)
    .reduce((sum, pool) => sum + pool.limits.max, 0);
  const count = vmIdCount(range);
  return maxMachines > count
    ? [
        warningAt(
          ['proxmox', name, 'vmIds'],
          `the range has ${count} VM ids, but the pools of this region may have ${maxMachines} machines`,
        ),
      ]
    : [];
}
