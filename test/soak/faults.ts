// SPDX-License-Identifier: Apache-2.0
// The faults of the soak. In the coverage table a row is a kind of fault and a column the phase of the machine it hit.
import type { Machine } from '../../src/model/machine.ts';
import type { Random } from '../../src/ports/random.ts';
import type { FaultRule } from '../../src/sim/proxmox/index.ts';

export const PHASES = [
  'placed',
  'creating',
  'configuring',
  'starting',
  'booting',
  'joining',
  'ready',
  'deleting',
] as const;
export type Column = (typeof PHASES)[number];

const MINUTE_MS = 60_000;
type FaultTemplate = Omit<FaultRule, 'endpoint' | 'taskType'>;

/** Faults of a call to Proxmox. */
const CALL_FAULTS: Readonly<Record<string, FaultTemplate>> = {
  error: { kind: 'error', status: 500, message: 'something went wrong' },
  refused: { kind: 'error', status: 403, message: 'Permission check failed' },
  'lock-timeout': {
    kind: 'error',
    status: 500,
    message: "can't lock file '/var/lock/x' - got timeout",
  },
  delay: { kind: 'delay', delayMs: 20_000 },
  'slow-answer': { kind: 'response-delayed', delayMs: MINUTE_MS },
  hang: { kind: 'hang' },
  lost: { kind: 'response-lost' },
  'host-down': { kind: 'host-down' },
  'host-down-after': { kind: 'host-down-after' },
};
/** Faults of a Proxmox task. */
const TASK_FAULTS: Readonly<Record<string, FaultTemplate>> = {
  'task-fails': { kind: 'task-fails', delayMs: 1_000 },
  'task-killed': { kind: 'task-killed', delayMs: 1_000 },
};
/** Faults of the process itself. */
export const PROCESS_FAULTS = ['crash', 'database-lost', 'database-rolled-back'] as const;

export const ROWS: readonly string[] = [
  ...Object.keys(CALL_FAULTS),
  ...Object.keys(TASK_FAULTS),
  ...PROCESS_FAULTS,
];

const VM = '/nodes/{node}/qemu/{vmid}';
const STORAGE = '/nodes/{node}/storage/{storage}';
const ENDPOINTS: Readonly<Record<Column, readonly string[]>> = {
  placed: [`POST ${STORAGE}/download-url`],
  creating: ['POST /nodes/{node}/qemu', `POST ${VM}/clone`],
  configuring: [`POST ${STORAGE}/upload`, `PUT ${VM}/config`, `PUT ${VM}/resize`],
  starting: [`POST ${VM}/status/start`],
  booting: [`POST ${VM}/agent/ping`],
  joining: [],
  ready: [`DELETE ${STORAGE}/content/{volume}`],
  deleting: [`POST ${VM}/status/shutdown`, `DELETE ${VM}`, `PUT ${VM}/config`],
};
const TASK_TYPES: Readonly<Record<Column, readonly string[]>> = {
  placed: ['download'],
  creating: ['qmcreate', 'qmclone'],
  configuring: ['imgcopy', 'resize'],
  starting: ['qmstart'],
  booting: [],
  joining: [],
  ready: [],
  deleting: ['qmshutdown', 'qmdestroy'],
};

/** False for combinations that cannot occur: no task runs while a guest boots or is ready, no call while it joins. */
export function isPossible(row: string, column: Column): boolean {
  if (row in TASK_FAULTS) return TASK_TYPES[column].length > 0;
  return !(row in CALL_FAULTS) || ENDPOINTS[column].length > 0;
}

export interface Fault {
  readonly row: string;
  readonly column: Column;
  readonly rules: readonly FaultRule[];
}

export function pickFault(random: Random): Fault {
  const rows = [...Object.keys(CALL_FAULTS), ...Object.keys(TASK_FAULTS)];
  for (;;) {
    const row = pick(random, rows);
    const column = pick(random, PHASES);
    if (isPossible(row, column)) return { row, column, rules: buildRules(row, column, random) };
  }
}

function buildRules(row: string, column: Column, random: Random): readonly FaultRule[] {
  const task = TASK_FAULTS[row];
  if (task !== undefined) {
    return TASK_TYPES[column].map((taskType) => ({ ...task, taskType }));
  }
  const endpoint = pick(random, ENDPOINTS[column]);
  const isCreation = column === 'creating';
  const kind = CALL_FAULTS[row] ?? { kind: 'response-lost' };
  return (isCreation ? ENDPOINTS.creating : [endpoint]).map((one) => ({ ...kind, endpoint: one }));
}

export function pick<T>(random: Random, items: readonly T[]): T {
  const one = items[random.integer(items.length)];
  if (one === undefined) throw new Error('cannot pick from an empty list');
  return one;
}

export interface FaultTarget {
  readonly endpoint?: string;
  readonly vmId?: number | undefined;
  readonly taskType?: string;
}

const COLUMN_BY_OPERATION: readonly (readonly [RegExp, Column])[] = [
  [/download/, 'placed'],
  [/upload|imgcopy/, 'configuring'],
  [/clone|POST \/nodes\/\{node\}\/qemu$|qmcreate/, 'creating'],
];

/** The phase of the machine that the fault hit; undefined when the call belongs to no machine. */
export function findColumn(target: FaultTarget, machines: readonly Machine[]): Column | undefined {
  const operation = `${target.endpoint ?? ''}${target.taskType ?? ''}`;
  const known = COLUMN_BY_OPERATION.find(([pattern]) => pattern.test(operation));
  if (known !== undefined) return known[1];
  const phase =
    target.vmId === undefined
      ? findPhaseOfSeedHolder(machines)
      : machines.find(({ placement }) => placement?.vmId === target.vmId)?.phase;
  return PHASES.find((column) => column === phase);
}

function findPhaseOfSeedHolder(machines: readonly Machine[]): string | undefined {
  const held = machines.filter(({ seedVolume }) => seedVolume !== undefined);
  return (
    held.find(({ phase }) => phase === 'ready') ?? held.find(({ phase }) => phase === 'deleting')
  )?.phase;
}
