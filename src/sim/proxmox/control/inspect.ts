// SPDX-License-Identifier: Apache-2.0
// The actual state of a simulated cluster, for tests: no permissions, no delay, no wire format.
import type { Core } from '../core.ts';
import { type TaskRecord } from '../tasks/engine.ts';

export interface InspectedVm {
  readonly id: number;
  readonly host: string;
  readonly running: boolean;
  readonly config: Readonly<Record<string, string>>;
  readonly pending: Readonly<Record<string, string>>;
}

export interface InspectedVolume {
  readonly id: string;
  /** Undefined on shared storage. */
  readonly host: string | undefined;
  readonly content: string;
  readonly size: number;
  readonly vmId: number | undefined;
}

export interface Inspection {
  /** Temporary files of uploads that could not be passed on, as `host:path`. */
  readonly leftUploads: readonly string[];
  readonly vms: readonly InspectedVm[];
  readonly volumes: readonly InspectedVolume[];
  readonly runningTasks: readonly TaskRecord[];
  readonly tasksStarted: number;
  readonly heldLocks: readonly string[];
  /** `METHOD path status` → number of requests. */
  readonly requests: ReadonlyMap<string, number>;
}

function inspectVolumes(core: Core): InspectedVolume[] {
  return [...core.state.storages.values()].flatMap((storage) =>
    [...storage.volumes].flatMap(([host, held]) =>
      [...held.values()].map((volume) => ({
        id: `${storage.id}:${volume.name}`,
        host: host === '*' ? undefined : host,
        content: volume.content,
        size: volume.size,
        vmId: volume.vmId,
      })),
    ),
  );
}

export function inspectCluster(core: Core, requests: ReadonlyMap<string, number>): Inspection {
  return {
    leftUploads: [...core.state.leftUploads],
    vms: [...core.state.vms.values()].map((vm) => ({
      id: vm.id,
      host: vm.host,
      running: vm.running !== undefined,
      config: { ...vm.config },
      pending: { ...vm.pending },
    })),
    volumes: inspectVolumes(core),
    runningTasks: core.tasks.running(),
    tasksStarted: core.tasks.startedTotal,
    heldLocks: core.locks.held(),
    requests: new Map(requests),
  };
}
