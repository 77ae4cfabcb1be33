// SPDX-License-Identifier: Apache-2.0
// What takes more than one key to tell: references, overlaps, sums. Pure, and every check looks at its own
// matter only, so that all problems come out in one run. The file may lack parts that the schema refused: a
// check says nothing about what is not there.
import { type Finding, wrong } from '../issues/finding.ts';
import type { ConfigFile } from '../schema/index.ts';
import { checkAddresses } from './addresses.ts';
import { checkJoin } from './join.ts';
import { checkPools } from './pools.ts';
import { checkRegions } from './regions.ts';
import type { CheckScope } from './scope.ts';
import { checkServers } from './servers.ts';
import { checkSources } from './sources.ts';
import { checkVmIds } from './vm-ids.ts';

export { CheckScope, type ScopeFolders } from './scope.ts';

export function checkFile(file: ConfigFile, scope: CheckScope): readonly Finding[] {
  return [
    ...checkSomething(file, scope),
    ...checkServers(file, scope),
    ...checkRegions(file),
    ...checkVmIds(file),
    ...checkSources(file, scope),
    ...checkJoin(file),
    ...checkPools(file, scope),
    ...checkAddresses(file),
  ];
}

/** An empty file is valid YAML and means nothing. */
function checkSomething(file: ConfigFile, scope: CheckScope): readonly Finding[] {
  const isEmpty = Object.keys(file.proxmox).length === 0 && !scope.mentions('proxmox');
  return isEmpty ? [wrong([], "no Proxmox is named: 'proxmox' needs at least one region")] : [];
}
