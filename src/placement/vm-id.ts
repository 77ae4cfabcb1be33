// SPDX-License-Identifier: Apache-2.0
// VM ids are assigned round-robin over the region's range. Proxmox reassigns a freed id at once, and software
// that knows the old VM by its id (the Cluster Autoscaler, backups, a Node) would take the new VM for the old
// one.
import type { Machine } from '../model/machine.ts';
import { readProviderId } from '../model/provider-id.ts';
import { COOL_DOWN_MS, coolDownLeftMs, formatMinutes } from './cool-down.ts';

export type VmIdRecord = Pick<Machine, 'phase' | 'phaseSince' | 'requestedAt' | 'placement'>;

export interface VmIdRequest {
  readonly region: string;
  /** Both ends included. */
  readonly range: { readonly from: number; readonly to: number };
  /** Ids of VMs and containers, which share one id space. */
  readonly takenVmIds: readonly number[];
  /** All records, including those of gone machines: they contain when an id was freed. */
  readonly machines: readonly VmIdRecord[];
  /** spec.providerID of every Node. */
  readonly nodeProviderIds: readonly string[];
  /** Absent: the id of the machine that was requested last. */
  readonly lastAllocated?: number | undefined;
  readonly now: number;
  readonly coolDownMs?: number | undefined;
}

export type VmIdChoice =
  | { readonly chosen: true; readonly vmId: number }
  | {
      readonly chosen: false;
      readonly code: 'NO_VM_ID_FREE';
      readonly message: string;
      readonly numbers: Readonly<Record<string, number>>;
    };

type VmIdHold = 'exists' | 'reserved' | 'cooling-down' | 'namedByNode';

export function chooseVmId(request: VmIdRequest): VmIdChoice {
  const holds = holdsOf(request);
  const last = request.lastAllocated ?? lastRequestedVmId(request) ?? highestTakenVmId(request);
  const vmId = nextFreeVmId({ range: request.range, last }, (one) => holds.has(one));
  return vmId === undefined ? noVmIdFree(request, holds) : { chosen: true, vmId };
}

/** The next free id after `last`, with a lookup of held ids. Undefined if none is free. */
export function nextFreeVmId(
  { range, last }: Pick<VmIdRequest, 'range'> & { readonly last: number | undefined },
  isHeld: (vmId: number) => boolean,
): number | undefined {
  const { from, to } = range;
  const start = last === undefined || last < from || last >= to ? from : last + 1;
  // Stops at the first free id: the range may have a billion ids.
  for (let step = 0; step <= to - from; step += 1) {
    const vmId = from + ((start - from + step) % (to - from + 1));
    if (!isHeld(vmId)) return vmId;
  }
  return undefined;
}

/** Why each id of the range is held. The last entry for an id takes precedence. */
function holdsOf(request: VmIdRequest): ReadonlyMap<number, VmIdHold> {
  const all: readonly (readonly [number, VmIdHold])[] = [
    ...placedHere(request).flatMap((record) => holdOfRecord(record, request)),
    ...vmIdsNamedByNodes(request).map((vmId) => [vmId, 'namedByNode'] as const),
    ...request.takenVmIds.map((vmId) => [vmId, 'exists'] as const),
  ];
  return new Map(all.filter(([vmId]) => isInRange(vmId, request)));
}

function holdOfRecord(
  record: PlacedRecord,
  { now, coolDownMs }: VmIdRequest,
): readonly (readonly [number, VmIdHold])[] {
  const hold = vmIdHoldOf(record, now, coolDownMs);
  return hold === undefined ? [] : [[record.vmId, hold]];
}

/**
 * Why a record holds the VM id of its placement. Undefined after the cool-down. A machine that returned to
 * `requested` still holds the id it lost: another VM has that id now.
 */
export function vmIdHoldOf(
  { phase, phaseSince }: Pick<Machine, 'phase' | 'phaseSince'>,
  now: number,
  coolDownMs = COOL_DOWN_MS,
): 'reserved' | 'cooling-down' | undefined {
  if (phase !== 'gone' && phase !== 'failed') return 'reserved';
  return coolDownLeftMs(phaseSince, now, coolDownMs) > 0 ? 'cooling-down' : undefined;
}

interface PlacedRecord extends Omit<VmIdRecord, 'placement'> {
  readonly vmId: number;
}

/** Current holders last, so that an earlier holder's cool-down does not hide them. */
function placedHere({ machines, region }: VmIdRequest): readonly PlacedRecord[] {
  const here = machines.flatMap(({ placement, ...record }) =>
    placement?.region === region ? [{ ...record, vmId: placement.vmId }] : [],
  );
  const isEnded = ({ phase }: PlacedRecord) => phase === 'gone' || phase === 'failed';
  return [...here.filter(isEnded), ...here.filter((record) => !isEnded(record))];
}

/** The VM ids of a region that Nodes refer to. */
export function vmIdsNamedByNodes({
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

function lastRequestedVmId(request: VmIdRequest): number | undefined {
  const [last] = placedHere(request)
    .filter(({ vmId }) => isInRange(vmId, request))
    .toSorted(compareNewestFirst);
  return last?.vmId;
}

/** Sorts the most recently requested machine first. */
export function compareNewestFirst(left: AllocatedVmId, right: AllocatedVmId): number {
  return right.requestedAt - left.requestedAt || right.vmId - left.vmId;
}

interface AllocatedVmId {
  readonly requestedAt: number;
  readonly vmId: number;
}

// Without records it is unknown which ids were freed recently; most likely they are below the highest id in
// use.
export function highestTakenVmId(
  request: Pick<VmIdRequest, 'takenVmIds' | 'range'>,
): number | undefined {
  return request.takenVmIds
    .filter((vmId) => isInRange(vmId, request))
    .reduce<number | undefined>((high, vmId) => Math.max(high ?? vmId, vmId), undefined);
}

function noVmIdFree(request: VmIdRequest, holds: ReadonlyMap<number, VmIdHold>): VmIdChoice {
  const { from, to } = request.range;
  const count = (kind: VmIdHold) => [...holds.values()].filter((hold) => hold === kind).length;
  const numbers = {
    from,
    to,
    ids: to - from + 1,
    exist: count('exists'),
    reserved: count('reserved'),
    coolingDown: count('cooling-down'),
    namedByNodes: count('namedByNode'),
  };
  const coolDownMs = nextFreeInMs(request, holds);
  const message =
    `none of the ${numbers.ids} VM ids ${from}-${to} of region ${request.region} is free (existing: ${numbers.exist}, ` +
    `reserved: ${numbers.reserved}, cooling down: ${numbers.coolingDown}, named by Nodes: ${numbers.namedByNodes})` +
    (coolDownMs === undefined ? '' : `; the next is free in ${formatMinutes(coolDownMs)}`);
  return {
    chosen: false,
    code: 'NO_VM_ID_FREE',
    message,
    numbers: coolDownMs === undefined ? numbers : { ...numbers, nextFreeInMs: coolDownMs },
  };
}

function nextFreeInMs(
  request: VmIdRequest,
  holds: ReadonlyMap<number, VmIdHold>,
): number | undefined {
  const { now, coolDownMs = COOL_DOWN_MS } = request;
  // An id may have been freed twice; only the last cool-down counts.
  const coolDowns = new Map<number, number>();
  for (const { vmId, phaseSince } of placedHere(request)) {
    const left = coolDownLeftMs(phaseSince, now, coolDownMs);
    if (holds.get(vmId) === 'cooling-down')
      coolDowns.set(vmId, Math.max(coolDowns.get(vmId) ?? 0, left));
  }
  return coolDowns.size === 0 ? undefined : Math.min(...coolDowns.values());
}
