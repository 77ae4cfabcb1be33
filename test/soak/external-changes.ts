// SPDX-License-Identifier: Apache-2.0
// Changes made outside pvescaler: an administrator edits VMs and Nodes, creates others, sets the clock, and cleans up
// after a host failure.
import type { ProxmoxSim } from '../../src/sim/proxmox/index.ts';
import { pick } from './faults.ts';
import type { Installation } from './installation.ts';
import { listOwnVms, type OwnVm, snapshotVm, type Vm } from './invariants.ts';
import type { ClusterMode } from './kubernetes.ts';
import { API_FAULTS } from './kubernetes-records.ts';
import type { SoakEnvironment } from './soak-environment.ts';
import { EDGE, FIRST_TEMPLATE_ID, hostsOf, LAB, LOST_AFTER_MS, VM_IDS } from './soak-settings.ts';

const MINUTE_MS = 60_000;

interface Target extends OwnVm {
  readonly installation: Installation;
  readonly sim: ProxmoxSim;
}

interface ExternalChange {
  /** Whether the change applies to this VM. */
  readonly appliesTo?: (target: Target, environment: SoakEnvironment) => boolean;
  readonly apply: (target: Target, environment: SoakEnvironment) => void;
}

const isReady = ({ marker }: Target): boolean =>
  marker.readySinceSeconds !== undefined && marker.deletingSinceSeconds === undefined;
const hasNode = (target: Target): boolean =>
  isReady(target) &&
  target.installation.cluster?.machineNodes().has(target.marker.machine) === true;

export const EXTERNAL_CHANGES: Readonly<Record<string, ExternalChange>> = {
  'VM renamed': { apply: ({ sim, vm }) => sim.externalChanges.rename(vm.id, `mine-${vm.id}`) },
  'VM retagged': { apply: ({ sim, vm }) => sim.externalChanges.retag(vm.id, ['mine']) },
  'VM annotated': {
    apply: ({ sim, vm: { id, config } }) =>
      sim.externalChanges.describe(id, `# Notes\n${config['description'] ?? ''}\nkeep`),
  },
  'VM stopped': { apply: ({ sim, vm }) => sim.externalChanges.stop(vm.id) },
  'VM migrated': {
    appliesTo: ({ region }) => region === LAB,
    apply: ({ sim, vm }, { random }) =>
      sim.externalChanges.migrate(
        vm.id,
        pick(
          random,
          hostsOf(LAB).filter((host) => host !== vm.host),
        ),
      ),
  },
  'VM deleted': { apply: (target) => deleteVm(target) },
  'VM copied': {
    apply: ({ region, sim, vm }, environment) => {
      const free = pickFreeId(environment, region);
      sim.externalChanges.copy(vm.id, free);
      environment.protectVm(region, free);
    },
  },
  'VM id occupied': {
    apply: ({ region }, environment) => {
      const free = pickFreeId(environment, region);
      createVm(environment, { region, id: free });
      environment.protectVm(region, free);
    },
  },
  'VM being created': {
    apply: ({ region, sim }, environment) => {
      const free = pickFreeId(environment, region);
      createVm(environment, { region, id: free });
      sim.externalChanges.setOption(free, 'lock', 'create');
      environment.protectVm(region, free);
    },
  },
  'marker removed': {
    appliesTo: isReady,
    apply: ({ installation, region, sim, vm, marker }, environment) => {
      sim.externalChanges.describe(vm.id, 'mine now');
      installation.deletionRequested.add(marker.machine);
      installation.takenOver.add(marker.machine);
      environment.protectVm(region, vm.id);
    },
  },
  'VM restored in another region': {
    appliesTo: (target, environment) =>
      isReady(target) && isFree(environment, otherRegion(target.region), target.vm.id),
    apply: ({ region, vm }, environment) => {
      const other = otherRegion(region);
      createVm(environment, { region: other, id: vm.id, config: vm.config });
      environment.protectVm(other, vm.id);
    },
  },
  'Node not ready': {
    appliesTo: hasNode,
    apply: ({ installation, marker }, { random }) =>
      installation.cluster?.makeNotReady(marker.machine, (1 + random.integer(20)) * MINUTE_MS),
  },
  'Node deleted': {
    appliesTo: hasNode,
    apply: ({ installation, marker }) => installation.cluster?.deleteMachineNode(marker.machine),
  },
};

export function applyExternalChange(environment: SoakEnvironment): void {
  const targets = environment.installations.flatMap((installation) =>
    listOwnVms(environment, installation)
      .filter(({ vm }) => vm.config['lock'] === undefined)
      .map((own) => ({ ...own, installation, sim: environment.region(own.region).sim })),
  );
  const possible = Object.entries(EXTERNAL_CHANGES).flatMap(([name, { appliesTo, apply }]) => {
    const found = targets.filter((target) => appliesTo?.(target, environment) ?? true);
    return found.length > 0 ? [{ name, apply, found }] : [];
  });
  if (possible.length === 0) return;
  const { name, apply, found } = pick(environment.random, possible);
  const target = pick(environment.random, found);
  environment.log(`external change: ${name}, VM ${target.region}/${target.vm.id}`);
  environment.externalChangeCount += 1;
  environment.countFeature(name);
  apply(target, environment);
}

export const CLUSTER_FAULTS: Readonly<Record<string, ClusterMode>> = {
  'Kubernetes unreachable': 'unreachable',
  'Kubernetes watch stale': 'watch-stale',
  'all Nodes missing': 'no-nodes',
};

/** Lasts for less or for more than the time after which a Node counts as lost. */
export async function applyClusterFault(environment: SoakEnvironment): Promise<void> {
  const { random } = environment;
  const { cluster, name } = pick(random, environment.installations);
  if (cluster === undefined) return;
  const fault = pick(random, Object.keys(CLUSTER_FAULTS));
  const forMs = MINUTE_MS + random.integer(3 * LOST_AFTER_MS);
  environment.log(`${name}: ${fault} for ${Math.round(forMs / 1_000)} s`);
  environment.countFeature(fault);
  await cluster.setMode(CLUSTER_FAULTS[fault] ?? 'connected', forMs);
}

/** A fault of the API server that has the records. */
export function applyApiFault(environment: SoakEnvironment): void {
  const { random } = environment;
  const { objects, name } = pick(random, environment.installations);
  if (objects === undefined) return;
  const [fault, apply] = pick(random, Object.entries(API_FAULTS));
  environment.log(`${name}: ${fault}`);
  environment.countFeature(fault);
  apply(objects, random);
}

export const CLOCK_JUMPS = ['wall clock set forward', 'wall clock set back'];

/** Sets the wall clock forward or back by minutes or hours. */
export function jumpWallClock(environment: SoakEnvironment): void {
  const { clock, random } = environment;
  const name = pick(random, CLOCK_JUMPS);
  const isBack = name === 'wall clock set back';
  const minutes = pick(random, [1, 10, 60, 360]) * (1 + random.fraction());
  const sign = isBack ? -1 : 1;
  environment.log(`${name} by ${Math.round(minutes)} min`);
  environment.countFeature(name);
  clock.setWallClock(clock.now() + Math.round(sign * minutes * MINUTE_MS));
}

interface NewVm {
  readonly region: string;
  readonly id: number;
  /** Options of another VM; absent: a plain VM. */
  readonly config?: Readonly<Record<string, string>>;
}

/** Options that a backup restores; the disks are those of a template. */
const RESTORED_OPTIONS = ['name', 'description', 'tags', 'smbios1', 'cores', 'memory', 'agent'];

export function createVm(environment: SoakEnvironment, { region, id, config }: NewVm): void {
  const { externalChanges } = environment.region(region).sim;
  externalChanges.copy(FIRST_TEMPLATE_ID, id);
  if (config === undefined) return;
  for (const option of RESTORED_OPTIONS) externalChanges.setOption(id, option, config[option]);
}

function otherRegion(region: string): string {
  return region === LAB ? EDGE : LAB;
}

function isFree(environment: SoakEnvironment, region: string, vmId: number): boolean {
  const vms = environment.regions.get(region)?.sim.inspect().vms;
  return vms !== undefined && vms.every(({ id }) => id !== vmId);
}

function pickFreeId(environment: SoakEnvironment, region: string): number {
  for (;;) {
    const id = VM_IDS.from + environment.random.integer(VM_IDS.to - VM_IDS.from + 1);
    if (isFree(environment, region, id)) return id;
  }
}

function deleteVm({ installation, sim, vm, marker }: Target): void {
  installation.deletionRequested.add(marker.machine);
  sim.externalChanges.delete(vm.id);
}

/** Deletes the image on every host, so that the next machine has to download it. */
export function deleteImages(environment: SoakEnvironment): void {
  for (const { sim } of environment.regions.values()) {
    for (const { id, host, content } of sim.inspect().volumes) {
      if (content === 'import' && host !== undefined) sim.externalChanges.deleteVolume(host, id);
    }
  }
}

/** Brings hosts back, and deletes what a killed worker left behind: only an administrator can delete a locked VM. */
export function cleanUpSite(environment: SoakEnvironment): void {
  for (const [region, { sim }] of environment.regions) {
    for (const host of hostsOf(region)) sim.externalChanges.hostUp(host);
    finishCreations(environment, region);
    const { vms, runningTasks } = sim.inspect();
    if (!environment.needsCleanup || runningTasks.length > 0) continue;
    for (const vm of vms) {
      if (vm.config['lock'] !== undefined && !environment.isUnmanaged(region, vm.id))
        deleteLockedVm(environment, region, vm);
    }
    deleteStrayDisks(region, sim);
  }
}

/** The VM that another user creates is complete. */
function finishCreations(environment: SoakEnvironment, region: string): void {
  const { sim } = environment.region(region);
  for (const { id, config } of sim.inspect().vms) {
    if (config['lock'] !== 'create' || !environment.isUnmanaged(region, id)) continue;
    sim.externalChanges.setOption(id, 'lock', undefined);
    environment.unmanagedVms.set(`${region}/${id}`, snapshotVm(sim.inspect(), id));
  }
}

function deleteLockedVm(environment: SoakEnvironment, region: string, { id }: Vm): void {
  for (const installation of environment.installations) {
    const own = listOwnVms(environment, installation).find(
      (one) => one.region === region && one.vm.id === id,
    );
    if (own !== undefined) installation.deletionRequested.add(own.marker.machine);
  }
  environment.region(region).sim.externalChanges.delete(id);
}

function deleteStrayDisks(region: string, sim: ProxmoxSim): void {
  const { vms, volumes } = sim.inspect();
  const known = new Set(vms.map(({ id }) => id));
  for (const { id, host, vmId } of volumes) {
    if (vmId === undefined || known.has(vmId)) continue;
    for (const one of host === undefined ? hostsOf(region).slice(0, 1) : [host]) {
      sim.externalChanges.deleteVolume(one, id);
    }
  }
}

/** Ends all faults of the clusters, starts stopped VMs, and deletes VMs that were left alone and have no machine. */
export async function repairSite(environment: SoakEnvironment): Promise<void> {
  for (const installation of environment.installations) {
    await installation.cluster?.setMode('connected');
    installation.cluster?.restartKubelets();
    await confirmLost(environment, installation);
    const isLeftAlone = await findVmsLeftAlone(installation);
    for (const own of listOwnVms(environment, installation)) {
      const { sim } = environment.region(own.region);
      const isStartable =
        own.marker.readySinceSeconds !== undefined && own.vm.config['lock'] === undefined;
      if (isLeftAlone(own)) deleteVm({ ...own, installation, sim });
      else if (isStartable) sim.externalChanges.start(own.vm.id);
    }
  }
}

/** VMs that were restored or reported as left alone, and that no machine has. */
async function findVmsLeftAlone(installation: Installation): Promise<(own: OwnVm) => boolean> {
  const live = new Set(
    (await installation.machines())
      .filter(({ phase }) => phase !== 'gone' && phase !== 'failed')
      .map(({ id }) => id),
  );
  const duplicates = await listDuplicates(installation);
  return ({ marker, vm }) =>
    !live.has(marker.machine) &&
    (installation.restored.has(marker.machine) || duplicates.has(vm.id));
}

/** Ids of VMs that were reported as left alone, because their machine is over or has another VM. */
async function listDuplicates({ store }: Installation): Promise<ReadonlySet<number>> {
  const entries = await store.journal.read();
  const reported = entries.filter(({ reason }) => reason === 'DuplicateVm');
  return new Set(reported.map(({ message }) => Number(/VM (\d+)/.exec(message)?.[1])));
}

/** A person confirms that the machines that are kept as lost are gone. */
async function confirmLost(
  environment: SoakEnvironment,
  installation: Installation,
): Promise<void> {
  const present = new Set<string>(
    listOwnVms(environment, installation).map(({ marker }) => marker.machine),
  );
  const status = await environment.ask(installation, (fleet) => fleet.status());
  const known = new Set((await installation.machines()).map(({ id }) => id));
  for (const id of (status?.pools ?? []).flatMap(({ lost }) => lost?.machines ?? [])) {
    if (known.has(id) && !present.has(id)) await environment.requestDeletion(installation, id);
  }
}
