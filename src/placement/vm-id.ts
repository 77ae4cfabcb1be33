// SPDX-License-Identifier: Apache-2.0
// VM ids go round the region's range: Proxmox hands a freed id out at once, and whoever remembers the old VM
// by its id (the Cluster Autoscaler, backups, a Node) would take the new one for it.
import type { Machine } from '../model/machine.ts';
import { readProviderId } from '../model/provider-id.ts';
import { COOL_DOWN_MS, inMinutes, restLeftMs } from './cool-down.ts';

export type IdRecord = Pick<Machine, 'phase' | 'phaseSince' | 'requestedAt' | 'placement'>;

export interface VmIdRequest {
  readonly region: string;
  /** Both ends included. */
  readonly range: { readonly from: number; readonly to: number };
  /** Of VMs and containers: they share their ids. */
  readonly takenVmIds: readonly number[];
  /** All records, those of machines that are gone too: they tell when an id was freed. */
  readonly machines: readonly IdRecord[];
  /** spec.providerID of every Node. */
  readonly nodeProviderIds: readonly string[];
  /** Absent: that of the machine asked for last. */
  readonly lastGiven?: number | undefined;
  readonly now: number;
  readonly coolDownMs?: number | undefined;
}

export type VmIdChoice =
  | { readonly chosen: true; readonly vmId: number }
  | {
      readonly chosen: false;
      readonly code: 'NO_VM_ID_FREE';
      readonly sentence: string;
      readonly numbers: Readonly<Record<string, number>>;
    };

type Hold = 'exists' | 'reserved' | 'resting' | 'namedByNode';

export function chooseVmId(request: VmIdRequest): VmIdChoice {
  const holds = holdsOf(request);
  const last = request.lastGiven ?? lastAskedFor(request) ?? highestTaken(request);
  const vmId = nextFreeVmId({ range: request.range, last }, (one) => holds.has(one));
  return vmId === undefined ? noneFree(request, holds) : { chosen: true, vmId };
}

/** The next free one after the last, where somebody knows which are held. Undefined if none is. */
export function nextFreeVmId(
  { range, last }: Pick<VmIdRequest, 'range'> & { readonly last: number | undefined },
  isHeld: (vmId: number) => boolean,
): number | undefined {
  const { from, to } = range;
  const start = last === undefined || last < from || last >= to ? from : last + 1;
  // Ends at the latest after the ids that are held: a range may have a thousand million.
  for (let step = 0; step <= to - from; step += 1) {
    const vmId = from + ((start - from + step) % (to - from + 1));
    if (!isHeld(vmId)) return vmId;
  }
  return undefined;
}

/** What holds an id of the range; the firmest hold of several. */
function holdsOf(request: VmIdRequest): ReadonlyMap<number, Hold> {
  const all: readonly (readonly [number, Hold])[] = [
    ...placedHere(request).flatMap((record) => holdOfRecord(record, request)),
    ...idsOfNodes(request).map((vmId) => [vmId, 'namedByNode'] as const),
    ...request.takenVmIds.map((vmId) => [vmId, 'exists'] as const),
  ];
  return new Map(all.filter(([vmId]) => isInRange(vmId, request)));
}

function holdOfRecord(
  record: PlacedRecord,
  { now, coolDownMs }: VmIdRequest,
): readonly (readonly [number, Hold])[] {
  const hold = idHoldOf(record, now, coolDownMs);
  return hold === undefined ? [] : [[record.vmId, hold]];
}

/**
 * How a record holds the id of its placement; undefined once that has rested. One that was put back to `requested`
 * keeps what it lost: somebody else has that id now.
 */
export function idHoldOf(
  { phase, phaseSince }: Pick<Machine, 'phase' | 'phaseSince'>,
  now: number,
  coolDownMs = COOL_DOWN_MS,
): 'reserved' | 'resting' | undefined {
  if (phase !== 'gone' && phase !== 'failed') return 'reserved';
  return restLeftMs(phaseSince, now, coolDownMs) > 0 ? 'resting' : undefined;
}

interface PlacedRecord extends Omit<IdRecord, 'placement'> {
  readonly vmId: number;
}

/** Those that hold their id now last, so that an earlier owner's rest does not hide them. */
function placedHere({ machines, region }: VmIdRequest): readonly PlacedRecord[] {
  const here = machines.flatMap(({ placement, ...record }) =>
    placement?.region === region ? [{ ...record, vmId: placement.vmId }] : [],
  );
  const isOver = ({ phase }: PlacedRecord) => phase === 'gone' || phase === 'failed';
  return [...here.filter(isOver), ...here.filter((record) => !isOver(record))];
}

/** The VM ids of a region that Nodes name. */
export function idsOfNodes({
  nodeProviderIds,
  region,
}: Pick<VmIdRequest, 'nodeProviderIds' | 'region'>): readonly number[] {
  return nodeProviderIds.flatMap((text) => {
    const id = readProviderId(text);
    return id.kind === 'vm' && id.region === region ? [id.vmId] : [];
  });
}

function isInRange(vmId: number, { range }: Pick<VmIdRequest, 'range'>): boolean {
  return vmId >= range.from && vmId <= range.to;
}

function lastAskedFor(request: VmIdRequest): number | undefined {
  const [last] = placedHere(request)
    .filter(({ vmId }) => isInRange(vmId, request))
    .toSorted(laterFirst);
  return last?.vmId;
}

/** Whose id was given out later, as far as anybody remembers. */
export function laterFirst(left: Asked, right: Asked): number {
  return right.requestedAt - left.requestedAt || right.vmId - left.vmId;
}

interface Asked {
  readonly requestedAt: number;
  readonly vmId: number;
}

// Without records nobody knows what was freed lately; most likely it lies below the highest id in use.
export function highestTaken(
  request: Pick<VmIdRequest, 'takenVmIds' | 'range'>,
): number | undefined {
  return request.takenVmIds
    .filter((vmId) => isInRange(vmId, request))
    .reduce<number | undefined>((high, vmId) => Math.max(high ?? vmId, vmId), undefined);
}

function noneFree(request: VmIdRequest, holds: ReadonlyMap<number, Hold>): VmIdChoice {
  const { from, to } = request.range;
  const count = (kind: Hold) => [...holds.values()].filter((hold) => hold === kind).length;
  const numbers = {
    from,
    to,
    ids: to - from + 1,
    exist: count('exists'),
    reserved: count('reserved'),
    resting: count('resting'),
    namedByNodes: count('namedByNode'),
  };
  const rest = nextRested(request, holds);
  const sentence =
    `none of the ${numbers.ids} VM ids ${from}-${to} of region ${request.region} is free (exist: ${numbers.exist}, ` +
    `reserved: ${numbers.reserved}, freed lately: ${numbers.resting}, named by Nodes: ${numbers.namedByNodes})` +
    (rest === undefined ? '' : `; the next is free in ${inMinutes(rest)}`);
  return {
    chosen: false,
    code: 'NO_VM_ID_FREE',
    sentence,
    numbers: rest === undefined ? numbers : { ...numbers, nextFreeInMs: rest },
  };
}

function nextRested(request: VmIdRequest, holds: ReadonlyMap<number, Hold>): number | undefined {
  const { now, coolDownMs = COOL_DOWN_MS } = request;
  // An id may have been freed twice; only its last rest counts.
  const rests = new Map<number, number>();
  for (const { vmId, phaseSince } of placedHere(request)) {
    const left = restLeftMs(phaseSince, now, coolDownMs);
    if (holds.get(vmId) === 'resting') rests.set(vmId, Math.max(rests.get(vmId) ?? 0, left));
  }
  return rests.size === 0 ? undefined : Math.min(...rests.values());
}
