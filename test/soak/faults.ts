// SPDX-License-Identifier: Apache-2.0
// What goes wrong, and where: each row a kind of fault, each column the phase of the machine that it struck.
import type { Machine } from '../../src/model/machine.ts';
import type { Random } from '../../src/ports/random.ts';
import type { FaultRule } from '../../src/sim/proxmox/index.ts';

export const PHASES = [
  'placed',
  'creating',
  'configuring',
  'starting',
  'booting',
  'ready',
  'deleting',
] as const;
export type Column = (typeof PHASES)[number];

const MINUTE_MS = 60_000;
type Kind = Omit<FaultRule, 'endpoint' | 'taskType'>;

/** Kinds that hit a call to Proxmox. */
const CALLS: Readonly<Record<string, Kind>> = {
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
/** Kinds that hit a task. */
const TASKS: Readonly<Record<string, Kind>> = {
  'task-fails': { kind: 'task-fails', delayMs: 1_000 },
  'task-killed': { kind: 'task-killed', delayMs: 1_000 },
};
/** What happens to the process itself. */
export const DEATHS = ['crash', 'database-lost'] as const;

export const ROWS: readonly string[] = [...Object.keys(CALLS), ...Object.keys(TASKS), ...DEATHS];

const VM = '/nodes/{node}/qemu/{vmid}';
const STORAGE = '/nodes/{node}/storage/{storage}';
const ENDPOINTS: Readonly<Record<Column, readonly string[]>> = {
  placed: [`POST ${STORAGE}/download-url`],
  creating: ['POST /nodes/{node}/qemu', `POST ${VM}/clone`],
  configuring: [`POST ${STORAGE}/upload`, `PUT ${VM}/config`, `PUT ${VM}/resize`],
  starting: [`POST ${VM}/status/start`],
  booting: [`POST ${VM}/agent/ping`],
  ready: [`DELETE ${STORAGE}/content/{volume}`],
  deleting: [`POST ${VM}/status/shutdown`, `DELETE ${VM}`, `PUT ${VM}/config`],
};
const TASK_TYPES: Readonly<Record<Column, readonly string[]>> = {
  placed: ['download'],
  creating: ['qmcreate', 'qmclone'],
  configuring: ['imgcopy', 'resize'],
  starting: ['qmstart'],
  booting: [],
  ready: [],
  deleting: ['qmshutdown', 'qmdestroy'],
};

/** Cells that cannot be: no task runs while a guest boots or is ready. */
export function isPossible(row: string, column: Column): boolean {
  return !(row in TASKS) || TASK_TYPES[column].length > 0;
}

export interface Fault {
  readonly row: string;
  readonly column: Column;
  readonly rules: readonly FaultRule[];
}

export function aFault(random: Random): Fault {
  const rows = [...Object.keys(CALLS), ...Object.keys(TASKS)];
  for (;;) {
    const row = pick(random, rows);
    const column = pick(random, PHASES);
    if (isPossible(row, column)) return { row, column, rules: rulesOf(row, column, random) };
  }
}

function rulesOf(row: string, column: Column, random: Random): readonly FaultRule[] {
  const task = TASKS[row];
  if (task !== undefined) {
    return TASK_TYPES[column].map((taskType) => ({ ...task, taskType }));
  }
  const endpoint = pick(random, ENDPOINTS[column]);
  const isMaking = column === 'creating';
  const kind = CALLS[row] ?? { kind: 'response-lost' };
  return (isMaking ? ENDPOINTS.creating : [endpoint]).map((one) => ({ ...kind, endpoint: one }));
}

export function pick<T>(random: Random, among: readonly T[]): T {
  const one = among[random.integer(among.length)];
  if (one === undefined) throw new Error('nothing to pick from');
  return one;
}

export interface Target {
  readonly endpoint?: string;
  readonly vmId?: number | undefined;
  readonly taskType?: string;
}

const BY_WORK: readonly (readonly [RegExp, Column])[] = [
  [/download/, 'placed'],
  [/upload|imgcopy/, 'configuring'],
  [/clone|POST \/nodes\/\{node\}\/qemu$|qmcreate/, 'creating'],
];

/** The phase of the machine that was struck; undefined when it was nobody's. */
export function columnOf(target: Target, machines: readonly Machine[]): Column | undefined {
  const work = `${target.endpoint ?? ''}${target.taskType ?? ''}`;
  const known = BY_WORK.find(([pattern]) => pattern.test(work));
  if (known !== undefined) return known[1];
  const phase =
    target.vmId === undefined
      ? phaseOfSeed(machines)
      : machines.find(({ placement }) => placement?.vmId === target.vmId)?.phase;
  return PHASES.find((column) => column === phase);
}

function phaseOfSeed(machines: readonly Machine[]): string | undefined {
  const held = machines.filter(({ seedVolume }) => seedVolume !== undefined);
  return (
    held.find(({ phase }) => phase === 'ready') ?? held.find(({ phase }) => phase === 'deleting')
  )?.phase;
}
