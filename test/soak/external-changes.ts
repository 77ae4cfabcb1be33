// SPDX-License-Identifier: Apache-2.0
// Changes made outside pvescaler: an administrator edits VMs, creates others and cleans up after a host failure.
import { pick } from './faults.ts';
import { readOwnMarker, type Vm } from './invariants.ts';
import type { SoakEnvironment } from './soak-environment.ts';
import { FIRST_TEMPLATE_ID, HOSTS } from './soak-settings.ts';

type ExternalChange = (environment: SoakEnvironment, vm: Vm) => void;

const EXTERNAL_CHANGES: Readonly<Record<string, ExternalChange>> = {
  rename: ({ region }, { id }) => region.sim.externalChanges.rename(id, `mine-${id}`),
  retag: ({ region }, { id }) => region.sim.externalChanges.retag(id, ['mine']),
  note: ({ region }, { id, config }) =>
    region.sim.externalChanges.describe(id, `# Notes\n${config['description'] ?? ''}\nkeep`),
  stop: ({ region }, { id }) => region.sim.externalChanges.stop(id),
  migrate: ({ region, random }, { id }) =>
    region.sim.externalChanges.migrate(id, pick(random, HOSTS)),
  delete: (environment, vm) => deleteVm(environment, vm),
  copy: (environment, { id }) => {
    const free = pickFreeId(environment);
    environment.region.sim.externalChanges.copy(id, free);
    environment.protectVm(free);
  },
  'occupy a VM id': (environment) => {
    const free = pickFreeId(environment);
    environment.region.sim.externalChanges.copy(FIRST_TEMPLATE_ID, free);
    environment.region.sim.externalChanges.setOption(free, 'template', undefined);
    environment.protectVm(free);
  },
};

export function applyExternalChange(environment: SoakEnvironment): void {
  const { sim } = environment.region;
  const own = sim
    .inspect()
    .vms.filter((vm) => readOwnMarker(vm) !== undefined && vm.config['lock'] === undefined);
  if (own.length === 0) return;
  const name = pick(environment.random, Object.keys(EXTERNAL_CHANGES));
  const vm = pick(environment.random, own);
  environment.log(`external change: ${name}, VM ${vm.id}`);
  environment.externalChangeCount += 1;
  EXTERNAL_CHANGES[name]?.(environment, vm);
}

function pickFreeId(environment: SoakEnvironment): number {
  const taken = new Set(environment.region.sim.inspect().vms.map(({ id }) => id));
  for (;;) {
    const id = 1_250 + environment.random.integer(150);
    if (!taken.has(id)) return id;
  }
}

function deleteVm(environment: SoakEnvironment, vm: Vm): void {
  const marker = readOwnMarker(vm);
  if (marker !== undefined) environment.deletionRequested.add(marker.machine);
  environment.region.sim.externalChanges.delete(vm.id);
}

/** Deletes the image on every host, so that the next machine has to download it. */
export function deleteImages({ region }: SoakEnvironment): void {
  const { volumes } = region.sim.inspect();
  for (const { id, host, content } of volumes) {
    if (content === 'import' && host !== undefined)
      region.sim.externalChanges.deleteVolume(host, id);
  }
}

/** Brings hosts back, and deletes what a killed worker left behind: only an administrator can delete a locked VM. */
export function cleanUpSite(environment: SoakEnvironment): void {
  const { sim } = environment.region;
  for (const host of HOSTS) sim.externalChanges.hostUp(host);
  if (!environment.needsCleanup) return;
  const { vms, runningTasks } = sim.inspect();
  if (runningTasks.length > 0) return;
  for (const vm of vms) {
    if (vm.config['lock'] !== undefined && !environment.unmanagedVms.has(vm.id))
      deleteVm(environment, vm);
  }
  deleteStrayDisks(environment);
}

function deleteStrayDisks({ region: { sim } }: SoakEnvironment): void {
  const { vms, volumes } = sim.inspect();
  const known = new Set(vms.map(({ id }) => id));
  for (const { id, host, vmId } of volumes) {
    if (vmId === undefined || known.has(vmId)) continue;
    for (const one of host === undefined ? HOSTS.slice(0, 1) : [host]) {
      sim.externalChanges.deleteVolume(one, id);
    }
  }
}
