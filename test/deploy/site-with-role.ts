// SPDX-License-Identifier: Apache-2.0
// A site of three hosts on which nobody but root has rights, until the guide's commands have been run.
import { aRegion, REGION } from '../../src/fleet/testing/settings.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import type { VmRef } from '../../src/ports/hypervisor.ts';
import {
  aProcess,
  cluster,
  machinesIn,
  remains,
  type Site,
  type SourceName,
  siteSettings,
  untilAtRest,
  WHY,
} from '../fleet/simulated-site.ts';
import { simulatedRegion } from '../proxmox/simulated-region.ts';
import { Pveum } from './pveum.ts';

type Words = readonly string[];

export interface Trial {
  readonly version: '8.4' | '9.2';
  readonly source: SourceName;
  readonly commands: readonly Words[];
  readonly resourcePool?: string | undefined;
}

/** Half as many are enough for one that goes well. */
const ROUNDS = 90;

/** With a cloud-init drive, as most have. */
function templates() {
  return (cluster().vms ?? []).map((vm) => ({
    ...vm,
    config: { ...vm.config, ide2: 'local-lvm:cloudinit' },
  }));
}

/** With the account that the commands make. */
export async function siteWithRole({
  version,
  source,
  commands,
  resourcePool,
}: Trial): Promise<Site> {
  let secret = '';
  const users = [{ id: 'root@pam', password: 'simulated' }];
  const region = simulatedRegion(
    { version, cluster: { ...cluster(), vms: templates(), users, acl: [] } },
    {
      region: REGION,
      credentials: { kind: 'token', id: 'pvescaler@pve!server', secret: () => secret },
    },
  );
  const pveum = new Pveum(region.sim);
  for (const words of commands) {
    const answer = (await region.settled(pveum.run(words))) as { value?: string } | null;
    secret = answer?.value ?? secret;
  }
  const storage = { images: 'local', seeds: 'local', disks: ['local-lvm'] };
  const regions = { [REGION]: aRegion({ storage, resourcePool }) };
  const settings = siteSettings(source, { regions });
  return { ...region, settings, store: new MemoryStore({ clock: region.clock }) };
}

/** `came and went`, or where it stuck. `meanwhile` is done while it is ready. */
export async function lifeOfAMachine(
  trial: Trial,
  meanwhile?: (site: Site, vm: VmRef) => Promise<unknown>,
): Promise<string> {
  const site = await siteWithRole(trial);
  const fleet = aProcess(site);
  await fleet.scaleTo('workers', 1, WHY);
  await untilAtRest(site, fleet, { rounds: ROUNDS });
  const [machine] = await machinesIn(site.store);
  if (machine?.phase !== 'ready' || machine.placement === undefined)
    return `stuck: ${machine?.phase} ${machine?.failure?.message}`;
  if (remains(site).isos.length > 0) return 'the seed stayed';
  if (meanwhile !== undefined) await site.settled(meanwhile(site, machine.placement));
  await fleet.scaleTo('workers', 0, WHY);
  await untilAtRest(site, fleet, { rounds: ROUNDS });
  const left = remains(site);
  return left.vms.length + left.disks.length === 0 ? 'came and went' : 'did not go';
}
