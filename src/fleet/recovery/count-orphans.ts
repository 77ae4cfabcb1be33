// SPDX-License-Identifier: Apache-2.0
// Counts the orphans that the passes have found, without a request: `listOrphans` reads every VM.

import type { ReconcileContext } from '../context/reconcile-context.ts';
import { orphanedNodesIn } from '../nodes/orphaned-nodes.ts';
import { candidates } from './adopt.ts';
import type { Orphan } from './list-orphans.ts';

export interface OrphanCount extends Pick<Orphan, 'region' | 'kind'> {
  readonly count: number;
}

/** The kinds that a pass finds. */
const KINDS = [
  'vm-without-record',
  'half-made-vm',
  'damaged-marker',
  'vm-left-alone',
  'seed-without-machine',
  'node-without-vm',
] as const satisfies readonly Orphan['kind'][];

/** Every kind of every region, also when there is none of it. */
export function countOrphans(context: ReconcileContext): readonly OrphanCount[] {
  const found = [...orphanedVms(context), ...seedsLeft(context), ...orphanedNodes(context)];
  const counts = new Map<string, number>();
  for (const { region, kind, count } of found) {
    const key = `${region} ${kind}`;
    counts.set(key, (counts.get(key) ?? 0) + count);
  }
  return Object.keys(context.settings.regions).flatMap((region) =>
    KINDS.map((kind) => ({ region, kind, count: counts.get(`${region} ${kind}`) ?? 0 })),
  );
}

/** Of a region that cannot be read: what was found before. */
function orphanedVms(context: ReconcileContext): readonly OrphanCount[] {
  const { inspected, leftAlone } = context.state;
  const open = new Map(
    Array.from(context.views.values(), (view) => [
      view.region,
      new Set(candidates(context, view).map(({ vmId }) => vmId)),
    ]),
  );
  const kinds = [
    ...Array.from(inspected, ([key, finding]) => ({ key, kind: INSPECTED_KINDS[finding] })),
    ...Array.from(leftAlone, ([key, kind]) => ({ key, kind })),
  ];
  return kinds.flatMap(({ key, kind }) => {
    const [region = '', vmId] = key.split('/');
    const isOpen = open.get(region)?.has(Number(vmId)) ?? true;
    return kind !== undefined && isOpen ? [{ region, kind, count: 1 }] : [];
  });
}

/** A VM that is not decided about yet is probably adopted by the next pass. */
const INSPECTED_KINDS = {
  unread: undefined,
  undecided: undefined,
  'half-made': 'half-made-vm',
  orphaned: 'vm-without-record',
} as const;

function seedsLeft({ state }: ReconcileContext): readonly OrphanCount[] {
  return Array.from(state.seedsLeft.values(), ({ region, count }) => ({
    region,
    kind: 'seed-without-machine',
    count,
  }));
}

function orphanedNodes(context: ReconcileContext): readonly OrphanCount[] {
  if (context.clusterReading.kind !== 'fresh') return [];
  return orphanedNodesIn(context, context.clusterReading.view.nodes).map(({ region }) => ({
    region,
    kind: 'node-without-vm',
    count: 1,
  }));
}
