// SPDX-License-Identifier: Apache-2.0
// Checks that need more than one key: references, overlaps, sums. They are pure and independent of each
// other, so that all problems are reported in one run. The file may lack parts that the schema refused; a
// check ignores missing parts.
import { errorAt, type Finding } from '../issues/finding.ts';
import type { ConfigFile } from '../schema/index.ts';
import { checkAddresses } from './addresses.ts';
import type { CheckContext } from './check-context.ts';
import { checkJoin } from './join.ts';
import { checkPools, checkSourceReference } from './pools.ts';
import { checkRegions } from './regions.ts';
import { checkServers } from './servers.ts';
import { checkSources } from './sources.ts';
import { checkVmIds } from './vm-ids.ts';

export { CheckContext, type CheckFolders } from './check-context.ts';

export function checkFile(file: ConfigFile, scope: CheckContext): readonly Finding[] {
  return [
    ...checkNotEmpty(file, scope),
    ...checkServers(file, scope),
    ...checkRegions(file),
    ...checkVmIds(file),
    ...checkSources(file, scope),
    ...checkJoin(file),
    ...checkPools(file, scope),
    ...checkSourceReference(['vms'], file.vms, scope),
    ...checkAddresses(file),
  ];
}

/** An empty file is valid YAML but configures nothing. */
function checkNotEmpty(file: ConfigFile, scope: CheckContext): readonly Finding[] {
  const isEmpty = Object.keys(file.proxmox).length === 0 && !scope.hasEntries('proxmox');
  return isEmpty
    ? [errorAt([], "no Proxmox cluster is configured; add at least one region to 'proxmox'")]
    : [];
}
