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
  /** Lets time pass until the work is settled. */
  readonly advanceUntil: <T>(work: Promise<T>) => Promise<T>;
  advance(ms: number): Promise<void>;
  /** Two that are online. */
  readonly hosts: readonly [string, string];
  /** Of the first host: for disks, for ISOs, for images. */
  readonly storages: { readonly disks: string; readonly isos: string; readonly images: string };
  /** A template on the first host, its disk on `storages.disks`. */
  readonly template: VmRef;
  /** A running container of somebody, on the second host. */
  readonly container: {
    readonly vmId: number;
    readonly cpus: number;
    readonly memoryBytes: number;
  };
  /** Something that can be downloaded. */
  readonly image: { readonly url: string; readonly sha256: string };
  /** The next such call has its effect, and its answer is lost. */
  loseAnswer(method: 'createVm' | 'startVm' | 'destroyVm'): void;
  /** A person moves a stopped VM that has no local disk left to mind. */
  move(vmId: number, host: string): Promise<void> | void;
  cleanup(): Promise<void>;
}

/** What every part of the suite gets: the one under test, anew for each test, and what tests say often. */
export interface HypervisorFixture {
  readonly underTest: HypervisorUnderTest;
  readonly hypervisor: Hypervisor;
  readonly vmOrder: (overrides?: Partial<CreateVmOrder>) => CreateVmOrder;
  readonly vmSpec: (overrides?: Partial<VmSpec>) => VmSpec;
  /** Waits for the task's end. */
  readonly followToEnd: (task: Promise<TaskRef | undefined>) => Promise<EndedTask>;
  /** A VM that is there, stopped. */
  readonly createVm: (overrides?: Partial<CreateVmOrder>) => Promise<VmRef>;
  /** A VM whose guest answers. */
  readonly bootVm: () => Promise<VmRef>;
  readonly readConfig: (vm: VmRef) => Promise<VmConfig>;
}

export type EndedTask = TaskStatus & { readonly state: 'ended' };
