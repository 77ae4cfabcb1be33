// SPDX-License-Identifier: Apache-2.0
// A simulated site of three hosts, with the user, role and token that the guide's commands create.
import { aRegion, REGION } from '../../src/fleet/testing/settings.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import type { VmRef } from '../../src/ports/hypervisor.ts';
import {
  clusterWithTemplates,
  createProcess,
  createSettings,
  REASON,
  readInventory,
  readMachines,
  reconcileUntilIdle,
  type Site,
  type SourceName,
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

/** Twice as many passes as a successful lifecycle needs. */
const MAX_PASSES = 90;

/** The templates with a cloud-init drive, as most templates have. */
function templates() {
  return (clusterWithTemplates().vms ?? []).map((vm) => ({
    ...vm,
    config: { ...vm.config, ide2: 'local-lvm:cloudinit' },
  }));
}

/** Creates the site with the account that the commands create. */
export async function siteWithRole({
  version,
  source,
  commands,
  resourcePool,
}: Trial): Promise<Site> {
  let secret = '';
  const users = [{ id: 'root@pam', password: 'simulated' }];
  const region = simulatedRegion(
    { version, cluster: { ...clusterWithTemplates(), vms: templates(), users, acl: [] } },
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
  const settings = createSettings(source, { regions });
  return { ...region, settings, store: new MemoryStore({ clock: region.clock }) };
}

/** Returns `created and deleted`, or where the lifecycle failed. Calls `whileReady` while the machine is ready. */
export async function runMachineLifecycle(
  trial: Trial,
  whileReady?: (site: Site, vm: VmRef) => Promise<unknown>,
): Promise<string> {
  const site = await siteWithRole(trial);
  const fleet = createProcess(site);
  await fleet.scaleTo('workers', 1, REASON);
  await reconcileUntilIdle(site, fleet, { maxPasses: MAX_PASSES });
  const [machine] = await readMachines(site.store);
  if (machine?.phase !== 'ready' || machine.placement === undefined)
    return `stuck: ${machine?.phase} ${machine?.failure?.message}`;
  if (readInventory(site).isos.length > 0) return 'the seed ISO was not deleted';
  if (whileReady !== undefined) await site.settled(whileReady(site, machine.placement));
  await fleet.scaleTo('workers', 0, REASON);
  await reconcileUntilIdle(site, fleet, { maxPasses: MAX_PASSES });
  const left = readInventory(site);
  return left.vms.length + left.disks.length === 0
    ? 'created and deleted'
    : 'the VM or its disks were not deleted';
}
