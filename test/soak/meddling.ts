// SPDX-License-Identifier: Apache-2.0
// A person at the console: does what people do to VMs, makes some of his own, and tidies up after power cuts.
import { pick } from './faults.ts';
import { ownMarker, type Vm } from './invariants.ts';
import { HOSTS, TEMPLATES_FROM } from './setting.ts';
import type { World } from './world.ts';

type Deed = (world: World, vm: Vm) => void;

const DEEDS: Readonly<Record<string, Deed>> = {
  rename: ({ region }, { id }) => region.sim.externalChanges.rename(id, `mine-${id}`),
  retag: ({ region }, { id }) => region.sim.externalChanges.retag(id, ['mine']),
  note: ({ region }, { id, config }) =>
    region.sim.externalChanges.describe(id, `# Notes\n${config['description'] ?? ''}\nkeep`),
  stop: ({ region }, { id }) => region.sim.externalChanges.stop(id),
  migrate: ({ region, random }, { id }) =>
    region.sim.externalChanges.migrate(id, pick(random, HOSTS)),
  delete: (world, vm) => takeAway(world, vm),
  copy: (world, { id }) => {
    const free = freeId(world);
    world.region.sim.externalChanges.copy(id, free);
    world.protect(free);
  },
  'take an id': (world) => {
    const free = freeId(world);
    world.region.sim.externalChanges.copy(TEMPLATES_FROM, free);
    world.region.sim.externalChanges.setOption(free, 'template', undefined);
    world.protect(free);
  },
};

export function meddle(world: World): void {
  const { sim } = world.region;
  const own = sim
    .inspect()
    .vms.filter((vm) => ownMarker(vm) !== undefined && vm.config['lock'] === undefined);
  if (own.length === 0) return;
  const name = pick(world.random, Object.keys(DEEDS));
  const vm = pick(world.random, own);
  world.log(`a person: ${name} ${vm.id}`);
  world.meddled += 1;
  DEEDS[name]?.(world, vm);
}

function freeId(world: World): number {
  const taken = new Set(world.region.sim.inspect().vms.map(({ id }) => id));
  for (;;) {
    const id = 1_250 + world.random.integer(150);
    if (!taken.has(id)) return id;
  }
}

function takeAway(world: World, vm: Vm): void {
  const marker = ownMarker(vm);
  if (marker !== undefined) world.dismissed.add(marker.machine);
  world.region.sim.externalChanges.delete(vm.id);
}

/** The image is taken away everywhere; the next machine needs it again. */
export function removeImages({ region }: World): void {
  const { volumes } = region.sim.inspect();
  for (const { id, host, content } of volumes) {
    if (content === 'import' && host !== undefined)
      region.sim.externalChanges.deleteVolume(host, id);
  }
}

/** Hosts come back; what a dead worker left behind, only a person can remove. */
export function tidyUp(world: World): void {
  const { sim } = world.region;
  for (const host of HOSTS) sim.externalChanges.hostUp(host);
  if (!world.hasWreckage) return;
  const { vms, runningTasks } = sim.inspect();
  if (runningTasks.length > 0) return;
  for (const vm of vms) {
    if (vm.config['lock'] !== undefined && !world.strangers.has(vm.id)) takeAway(world, vm);
  }
  removeStrayDisks(world);
}

function removeStrayDisks({ region: { sim } }: World): void {
  const { vms, volumes } = sim.inspect();
  const known = new Set(vms.map(({ id }) => id));
  for (const { id, host, vmId } of volumes) {
    if (vmId === undefined || known.has(vmId)) continue;
    for (const one of host === undefined ? HOSTS.slice(0, 1) : [host]) {
      sim.externalChanges.deleteVolume(one, id);
    }
  }
}
