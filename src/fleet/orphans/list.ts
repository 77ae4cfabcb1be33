// SPDX-License-Identifier: Apache-2.0
// Everything that has lost its counterpart, both ways: on Proxmox without a record, in the records without a VM.

import type { Machine } from '../../model/machine.ts';
import { readMarker } from '../../model/marker.ts';
import { Unreachable } from '../../ports/errors.ts';
import type { RegionView, VmSummary } from '../../ports/hypervisor.ts';
import { candidates, ownershipOf } from '../adoption/adopt.ts';
import { Books } from '../books.ts';
import { isBeingMade } from '../lifecycle/being-made.ts';
import { isVmGone } from '../lifecycle/look.ts';
import { Memory } from '../memory.ts';
import type { Mirror } from '../mirror/mirror.ts';
import { ghostsIn } from '../nodes/ghosts.ts';
import { readCluster } from '../nodes/sight.ts';
import type { FleetOptions } from '../options.ts';
import { Turn } from '../turn.ts';
import { readViews } from '../views.ts';
import { orphanSeeds } from './sweep.ts';

export interface Orphan {
  readonly kind:
    | 'vm-without-record'
    | 'half-made-vm'
    | 'damaged-marker'
    | 'record-without-vm'
    | 'seed-without-machine'
    | 'address-without-machine'
    | 'node-without-vm';
  readonly region: string;
  /** A VM id, a volume, a machine, an address. */
  readonly what: string;
  readonly message: string;
  /** Whether a driver sets it right by itself, or a person has to. */
  readonly fixable: boolean;
}

const NOBODY = { name: 'none', holder: 'nobody', token: 0, expiresAt: 0 };

export async function listOrphans(
  options: FleetOptions,
  mirror: Mirror,
): Promise<readonly Orphan[]> {
  const { store, clock } = options;
  const { views, stale } = await readViews(options, undefined);
  const [unread] = Object.entries(stale);
  if (unread !== undefined) {
    throw new Unreachable('VIEW_STALE', `region ${unread[0]} cannot be read: ${unread[1]}`);
  }
  const books = await Books.open(mirror, NOBODY, () => clock.now());
  const leadership = { lease: NOBODY, mayAct: () => false };
  const memory = new Memory();
  const sight = await readCluster(options, memory);
  const { journal } = store;
  const turn = new Turn({ ...options, journal, books, leadership, memory, views, sight });
  const found: Orphan[] = [];
  for (const view of views.values()) {
    for (const vm of candidates(turn, view)) found.push(...(await orphanVm(turn, view.region, vm)));
    found.push(...(await lostVms(turn, view)));
    for (const { region, volume, machine } of await orphanSeeds(turn, view)) {
      const message = `seed of machine ${machine}, which is over or unknown`;
      found.push({ kind: 'seed-without-machine', region, what: volume, message, fixable: true });
    }
  }
  return [...found, ...orphanAddresses(turn), ...orphanNodes(turn)];
}

async function orphanVm(turn: Turn, region: string, vm: VmSummary): Promise<readonly Orphan[]> {
  const config = await turn.hypervisor(region).vmConfig(vm, turn.reading);
  const what = `VM ${vm.vmId}`;
  if (isBeingMade(config)) {
    const message = `locked (${config.lock ?? ''}) and unnamed on ${config.host}: being made, or left by a task that died`;
    return [{ kind: 'half-made-vm', region, what, message, fixable: false }];
  }
  const reading = readMarker(config.description);
  if (reading.kind === 'damaged') {
    return [{ kind: 'damaged-marker', region, what, message: reading.problem, fixable: false }];
  }
  const ownership = ownershipOf(turn, config);
  if (!ownership.owned) return [];
  const { pool, machine } = ownership.marker;
  const message = `machine ${machine} of pool ${pool} on ${config.host} has no record`;
  return [{ kind: 'vm-without-record', region, what, message, fixable: true }];
}

const HAS_A_VM: readonly Machine['phase'][] = [
  'configuring',
  'starting',
  'booting',
  'joining',
  'ready',
  'draining',
];

async function lostVms(turn: Turn, view: RegionView): Promise<readonly Orphan[]> {
  const seen = new Set(view.vms.map(({ vmId }) => vmId));
  const unseen = turn.books.machines.filter(
    ({ phase, placement }) =>
      placement?.region === view.region && HAS_A_VM.includes(phase) && !seen.has(placement.vmId),
  );
  // The records are younger than the view: what it does not have may have been made since.
  const lost = await Promise.all(
    unseen.map(async (machine) => ((await isGone(turn, machine)) ? [machine] : [])),
  );
  return lost.flat().flatMap(({ id, phase, placement }): readonly Orphan[] => {
    if (placement === undefined) return [];
    const message = `${placement.name} is ${phase}, but VM ${placement.vmId} is gone`;
    return [{ kind: 'record-without-vm', region: view.region, what: id, message, fixable: true }];
  });
}

async function isGone(turn: Turn, { placement }: Machine): Promise<boolean> {
  if (placement === undefined) return false;
  try {
    await turn.hypervisor(placement.region).vmConfig(placement, turn.reading);
    return false;
  } catch (error) {
    return isVmGone(error);
  }
}

/** A cluster that cannot be read is no reason not to tell the rest. */
function orphanNodes(turn: Turn): readonly Orphan[] {
  if (turn.sight.kind !== 'fresh') return [];
  return ghostsIn(turn, turn.sight.view.nodes).map(({ node, region, vmId }) => {
    const message = `node ${node.name} is not ready, and VM ${vmId} is gone`;
    return { kind: 'node-without-vm', region, what: node.name, message, fixable: true } as const;
  });
}

function orphanAddresses(turn: Turn): readonly Orphan[] {
  return turn.books.addresses.flatMap(({ address, region, machine, releasedAt }) => {
    const holder = turn.books.find(machine);
    const isHeld = holder !== undefined && holder.phase !== 'gone' && holder.phase !== 'failed';
    if (releasedAt !== undefined || isHeld) return [];
    const message = `leased to machine ${machine}, which is over or unknown`;
    return [
      { kind: 'address-without-machine', region, what: address, message, fixable: true } as const,
    ];
  });
}
