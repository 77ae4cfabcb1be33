// SPDX-License-Identifier: Apache-2.0
// One name for VM, guest and Node. By default it ends with a part of the machine id and is never reused,
// because k3s rejects a known host name with another password. Ordinal names are optional.
import { type Machine, type MachineId, shortMachineId } from '../model/machine.ts';

export interface MachineNameRequest {
  readonly names: {
    readonly prefix: string;
    readonly role?: string | undefined;
    readonly suffix: 'id' | 'ordinal';
  };
  readonly machine: MachineId;
  /** The machine's own record does not block a name. */
  readonly machines: readonly Pick<Machine, 'id' | 'phase' | 'placement'>[];
  /** Undefined for a VM whose name is not known yet. */
  readonly vmNames: readonly (string | undefined)[];
  readonly nodeNames: readonly string[];
}

/** Limit of a Linux host name and of the label kubernetes.io/hostname. */
const MAX_NAME_LENGTH = 63;

export function chooseMachineName(request: MachineNameRequest): string {
  const taken = takenNames(request);
  return pickFreeName(request, (name) => taken.has(name));
}

/** Like chooseMachineName, with a lookup of taken names. Calls `isTaken` in lower case. */
export function pickFreeName(
  { names, machine }: Pick<MachineNameRequest, 'names' | 'machine'>,
  isTaken: IsTaken,
): string {
  const stem = [names.prefix, names.role].filter(Boolean).join('-');
  return names.suffix === 'id' ? nameById(stem, machine, isTaken) : nameByOrdinal(stem, isTaken);
}

type IsTaken = (name: string) => boolean;

/** Uses the full id, which is unique, if the eight-digit name is taken. */
function nameById(stem: string, id: MachineId, isTaken: IsTaken): string {
  const name = joinName(stem, shortMachineId(id));
  return isTaken(name) ? joinName(stem, id) : name;
}

function nameByOrdinal(stem: string, isTaken: IsTaken): string {
  let ordinal = 1;
  while (isTaken(joinName(stem, String(ordinal)))) ordinal += 1;
  return joinName(stem, String(ordinal));
}

function joinName(stem: string, suffix: string): string {
  const stemLength = MAX_NAME_LENGTH - suffix.length - 1;
  return `${stem.slice(0, stemLength).replace(/[-.]+$/, '')}-${suffix}`;
}

// Host names are case-insensitive. A gone or failed machine releases its name, but its Node, while it exists,
// does not.
function takenNames({
  machine,
  machines,
  vmNames,
  nodeNames,
}: MachineNameRequest): ReadonlySet<string> {
  const recorded = machines
    .filter(({ id, phase }) => id !== machine && phase !== 'gone' && phase !== 'failed')
    .map(({ placement }) => placement?.name);
  return new Set(
    [...recorded, ...vmNames, ...nodeNames].flatMap((name) => name?.toLowerCase() ?? []),
  );
}
