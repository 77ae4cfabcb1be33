// SPDX-License-Identifier: Apache-2.0
// Lower bound of the time to create the running VMs: the work of their tasks plus the boot time of their guests,
// without any idle time in between.
import type { Core } from '../core.ts';
import type { TaskRecord } from '../tasks/engine.ts';

const CREATION_TASKS = ['qmcreate', 'qmclone'];

export function criticalPathMs(core: Core, creationsPerHost: number): number {
  const tasks = core.tasks.snapshot().filter(({ status }) => status === 'OK');
  const hosts = [...core.state.hosts.keys()];
  return Math.max(
    0,
    ...hosts.map((host) => hostCriticalPathMs(core, { host, tasks, creationsPerHost })),
  );
}

interface HostTasks {
  readonly host: string;
  readonly tasks: readonly TaskRecord[];
  readonly creationsPerHost: number;
}

function hostCriticalPathMs(core: Core, { host, tasks, creationsPerHost }: HostTasks): number {
  const here = tasks.filter((task) => task.host === host);
  const tails = postCreationTimesMs(core, host, here);
  if (tails.length === 0) return 0;
  const { speed } = core.state;
  const download = minWorkMs(here, ['download']) / speed;
  const creation = minWorkMs(here, CREATION_TASKS) / speed;
  // With equal creation times, creating the VM with the longest remaining time first is optimal.
  const ends = tails
    .toSorted((a, b) => b - a)
    .map((tail, at) => Math.ceil((at + 1) / creationsPerHost) * creation + tail);
  return download + Math.max(...ends);
}

/** For each VM, the time from the end of its creation until its guest agent responds. */
function postCreationTimesMs(
  core: Core,
  host: string,
  tasks: readonly TaskRecord[],
): readonly number[] {
  const upload = minWorkMs(tasks, ['imgcopy']);
  return [...core.state.vms.values()].flatMap((vm) => {
    const { running } = vm;
    if (vm.host !== host || running?.agentReadyAt === undefined) return [];
    const own = tasks.filter(({ id }) => id === String(vm.id));
    const start = minWorkMs(own, ['qmstart']);
    const work = minWorkMs(own, ['resize']) + upload + start;
    return [work / core.state.speed + running.agentReadyAt - running.startedAt];
  });
}

/** Least work of a task of these types; 0 without such a task. */
function minWorkMs(tasks: readonly TaskRecord[], types: readonly string[]): number {
  const works = tasks.filter(({ type }) => types.includes(type)).map(({ workMs }) => workMs);
  return works.length === 0 ? 0 : Math.min(...works);
}
