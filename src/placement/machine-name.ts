// SPDX-License-Identifier: Apache-2.0
// One name for VM, guest and Node. By default it ends in a piece of the machine's id and never comes back: k3s
// refuses a host name that it has seen with another password. Ordinals are for who wants them.
import type { Machine } from '../model/machine.ts';
import { type MachineId, shortMachineId } from '../model/machine-id.ts';

export interface NameRequest {
  readonly names: {
    readonly prefix: string;
    readonly role?: string | undefined;
    readonly suffix: 'id' | 'ordinal';
  };
  readonly machine: MachineId;
  /** Its own record does not stand in a machine's way. */
  readonly machines: readonly Pick<Machine, 'id' | 'phase' | 'placement'>[];
  /** Undefined for a VM whose name is not known yet. */
  readonly vmNames: readonly (string | undefined)[];
  readonly nodeNames: readonly string[];
}

/** A Linux host name and the label kubernetes.io/hostname hold no more. */
const NAME_MAX = 63;

export function chooseName(request: NameRequest): string {
  const taken = takenNames(request);
  return nameFor(request, (name) => taken.has(name));
}

/** The same where somebody knows which names are taken; names are asked for in lower case. */
export function nameFor(
  { names, machine }: Pick<NameRequest, 'names' | 'machine'>,
  isTaken: IsTaken,
): string {
  const stem = [names.prefix, names.role].filter(Boolean).join('-');
  return names.suffix === 'id' ? nameById(stem, machine, isTaken) : nameByNumber(stem, isTaken);
}

type IsTaken = (name: string) => boolean;

/** A longer piece where eight digits are taken; the whole id is nobody else's. */
function nameById(stem: string, id: MachineId, isTaken: IsTaken): string {
  const name = joined(stem, shortMachineId(id));
  return isTaken(name) ? joined(stem, id) : name;
}

function nameByNumber(stem: string, isTaken: IsTaken): string {
  let number = 1;
  while (isTaken(joined(stem, String(number)))) number += 1;
  return joined(stem, String(number));
}

function joined(stem: string, suffix: string): string {
  const room = NAME_MAX - suffix.length - 1;
  return `${stem.slice(0, room).replace(/[-.]+$/, '')}-${suffix}`;
}

// Host names know no case. What is gone or failed gives its name back: its Node, while there is one, does not.
function takenNames({ machine, machines, vmNames, nodeNames }: NameRequest): ReadonlySet<string> {
  const recorded = machines
    .filter(({ id, phase }) => id !== machine && phase !== 'gone' && phase !== 'failed')
    .map(({ placement }) => placement?.name);
  return new Set(
    [...recorded, ...vmNames, ...nodeNames].flatMap((name) => name?.toLowerCase() ?? []),
  );
}
