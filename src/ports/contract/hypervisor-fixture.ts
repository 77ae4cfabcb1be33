// SPDX-License-Identifier: Apache-2.0
import type {
  CreateVmOrder,
  Hypervisor,
  TaskRef,
  TaskStatus,
  VmConfig,
  VmRef,
  VmSpec,
} from '../hypervisor.ts';

export interface HypervisorUnderTest {
  readonly hypervisor: Hypervisor;
  /** Advances the clock until the promise settles. */
  readonly advanceUntil: <T>(work: Promise<T>) => Promise<T>;
  advance(ms: number): Promise<void>;
  /** Two online hosts. */
  readonly hosts: readonly [string, string];
  /** Storages of the first host. */
  readonly storages: { readonly disks: string; readonly isos: string; readonly images: string };
  /** A template on the first host, with its disk on `storages.disks`. */
  readonly template: VmRef;
  /** A running container on the second host. */
  readonly container: {
    readonly vmId: number;
    readonly cpus: number;
    readonly memoryBytes: number;
  };
  /** An image that can be downloaded. */
  readonly image: { readonly url: string; readonly sha256: string };
  /** The next call of the method takes effect, but its response is lost. */
  dropResponse(method: 'createVm' | 'startVm' | 'destroyVm'): void;
  /** Moves a stopped VM to another host, as a user would. */
  move(vmId: number, host: string): Promise<void> | void;
  cleanup(): Promise<void>;
}

/** The hypervisor under test, new for each test, with helper functions. */
export interface HypervisorFixture {
  readonly underTest: HypervisorUnderTest;
  readonly hypervisor: Hypervisor;
  readonly vmOrder: (overrides?: Partial<CreateVmOrder>) => CreateVmOrder;
  readonly vmSpec: (overrides?: Partial<VmSpec>) => VmSpec;
  /** Waits for the end of the task. */
  readonly followToEnd: (task: Promise<TaskRef | undefined>) => Promise<EndedTask>;
  /** Creates a stopped VM. */
  readonly createVm: (overrides?: Partial<CreateVmOrder>) => Promise<VmRef>;
  /** Creates a VM and waits until its guest agent responds. */
  readonly bootVm: () => Promise<VmRef>;
  readonly readConfig: (vm: VmRef) => Promise<VmConfig>;
}

export type EndedTask = TaskStatus & { readonly state: 'ended' };
