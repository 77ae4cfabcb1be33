// SPDX-License-Identifier: Apache-2.0
import type { Host } from '../model/host.ts';
import type { PvescalerError } from './errors.ts';

/** A VM as the caller last knew it. The adapter looks its host up again when it has moved. */
export interface VmRef {
  readonly vmId: number;
  readonly host: string;
}

/** One line of the region's overview. */
export interface VmSummary extends VmRef {
  /** Undefined for up to ten seconds after creation: the overview lags behind. */
  readonly name: string | undefined;
  /** `unknown` while the overview has not seen it yet, or its host is down. Not the truth: see `vmState`. */
  readonly power: 'running' | 'stopped' | 'unknown';
  /** Lower case, sorted, as Proxmox stores them. For lists, never for ownership. */
  readonly tags: readonly string[];
  readonly isTemplate: boolean;
  /** `clone`, `create`, `backup`, … while Proxmox holds it. */
  readonly lock: string | undefined;
  /** Configured, not momentary; undefined while neither overview nor configuration tells (it is being made). */
  readonly cpus: number | undefined;
  readonly memoryBytes: number | undefined;
}

/** A container takes room on its host like a VM does; it is nothing that we make, move or remove. */
export interface ContainerSummary {
  readonly vmId: number;
  readonly host: string;
  readonly power: 'running' | 'stopped' | 'unknown';
  readonly isTemplate: boolean;
  /** Configured; one without a limit has all CPUs of its host. Undefined until the overview tells. */
  readonly cpus: number | undefined;
  readonly memoryBytes: number | undefined;
}

export interface RegionView {
  readonly region: string;
  /** Wall clock at which the reading was complete. */
  readonly takenAt: number;
  readonly version: string;
  readonly hosts: readonly Host[];
  readonly vms: readonly VmSummary[];
  readonly containers: readonly ContainerSummary[];
  /** Of VMs and containers, which share them. */
  readonly takenVmIds: readonly number[];
}

/** What a VM's configuration says, pending changes included. */
export interface VmConfig extends VmRef {
  /** Changes with the configuration; naming it in a change refuses a change made meanwhile. */
  readonly digest: string;
  readonly name: string | undefined;
  readonly description: string | undefined;
  readonly tags: readonly string[];
  /** Lower case; undefined if none is set. */
  readonly smbiosUuid: string | undefined;
  readonly lock: string | undefined;
  readonly isTemplate: boolean;
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Static addresses named in the configuration (ipconfigN), in CIDR form. */
  readonly addresses: readonly string[];
  /** Every option as Proxmox stores it: `scsi0`, `net0`, `ide2`, … */
  readonly options: Readonly<Record<string, string>>;
}

export interface VmState extends VmRef {
  readonly power: 'running' | 'stopped';
  readonly lock: string | undefined;
  readonly uptimeSeconds: number;
}

/** A task that was started. Its own host answers for it. */
export interface TaskRef {
  readonly upid: string;
}

export type TaskStatus =
  | { readonly state: 'running' }
  /** `warnings` > 0 is success with something to tell; never a failure. */
  | {
      readonly state: 'ended';
      readonly succeeded: boolean;
      readonly warnings: number;
      readonly message: string;
      /** What the message of a failed task means, translated once: VM_ID_TAKEN, LOCK_TIMED_OUT, TASK_FAILED, … */
      readonly failure?: PvescalerError;
    };

export interface NetworkInterface {
  readonly model: string;
  readonly bridge: string;
  readonly vlan?: number;
  readonly mtu?: number;
  readonly queues?: number;
  readonly mac?: string;
  readonly firewall?: boolean;
}

/** Name, tags, description and SMBIOS UUID identify the VM as ours; they go in with the first call. */
export interface VmIdentity {
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly smbiosUuid: string;
}

export interface VmHardware {
  readonly cores: number;
  readonly memoryBytes: number;
  /** 0 = ballooning off. */
  readonly balloonBytes: number;
  readonly networks: readonly NetworkInterface[];
  /** Boots from disk, or from the first network interface. */
  readonly bootFrom: 'disk' | 'network';
  /** Further options, already validated: `{ cpu: 'host', sockets: '1' }`. */
  readonly options: Readonly<Record<string, string>>;
}

/** How a disk is attached. Absent: freed blocks are handed back, a thread where the controller has them. */
export interface DiskOptions {
  readonly discard: boolean;
  readonly ssd: boolean;
  readonly iothread: boolean;
  readonly cache: 'none' | 'writethrough' | 'writeback' | 'directsync' | 'unsafe';
}

export interface CreateVmOrder extends VmRef {
  readonly identity: VmIdentity;
  readonly hardware: VmHardware;
  /** `importFrom` = volume id of an image (`local:import/x.qcow2`); absent = an empty disk of `bytes`. */
  readonly disk: Partial<DiskOptions> & {
    readonly storage: string;
    readonly bytes: number;
    readonly importFrom?: string;
  };
  readonly resourcePool?: string;
}

export interface CloneVmOrder extends VmRef {
  /** A template on the same host, or on shared storage. */
  readonly source: VmRef;
  readonly linked: boolean;
  /** For full clones; refused by Proxmox for linked ones. */
  readonly storage?: string;
  /** All that a clone accepts of an identity; tags and SMBIOS UUID follow by `configureVm`. */
  readonly name: string;
  readonly description: string;
  readonly resourcePool?: string;
}

export interface VmChange {
  readonly set?: Readonly<Record<string, string>>;
  readonly remove?: readonly string[];
  readonly digest?: string;
}

export interface Volume {
  readonly id: string;
  readonly bytes: number;
  readonly content: string;
  readonly vmId?: number;
}

export interface ImageOrder {
  readonly host: string;
  readonly storage: string;
  readonly url: string;
  readonly fileName: string;
  readonly checksum?: { readonly algorithm: 'sha256' | 'sha512'; readonly hex: string };
  readonly verifyCertificates: boolean;
}

export interface GuestInterface {
  readonly name: string;
  readonly mac: string | undefined;
  /** CIDR form; without loopback and link-local. */
  readonly addresses: readonly string[];
}

export interface GuestCommand {
  /** Program and arguments; no shell, hence no secrets here: they would show in the guest's process list. */
  readonly command: readonly string[];
  /** Standard input. Secrets go here. */
  readonly input?: string;
  readonly timeoutMs: number;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * One Proxmox VE cluster (a region of ours).
 *
 * Rejections are our errors only: Unreachable and TimedOut (the call may or may not have had its effect,
 * unless `facts.requestSent` is false), Unauthorized, Conflict, NotFound, NoCapacity, InvalidConfig,
 * UnsupportedVersion, TaskFailed, Cancelled. Reads are retried inside; a call that starts a task never is:
 * when its answer is lost, only looking at the VM tells whether it happened.
 *
 * Methods that return a TaskRef have *started* work when they resolve; `task` tells the end. Methods that
 * return nothing have *finished* it.
 */
export interface Hypervisor {
  readonly region: string;

  /** Everything at once, from one reading whose cost does not grow with the number of calls for VMs at rest. */
  view(options?: CallOptions): Promise<RegionView>;
  /** NotFound/VM_NOT_FOUND only when Proxmox says that no host has it; never because a host is down. */
  vmConfig(vm: VmRef, options?: CallOptions): Promise<VmConfig>;
  /** The truth about power and lock, from the VM's host. */
  vmState(vm: VmRef, options?: CallOptions): Promise<VmState>;

  /**
   * Claims the id: when it resolves, the VM exists, with lock `create` and nothing else; its identity is there
   * once the task has ended well. Until then it is undecided whose it is, unless a task of ours names it.
   * A failed task removes it again. Conflict/VM_ID_TAKEN when somebody else has the id: nothing was made.
   */
  createVm(order: CreateVmOrder, options?: CallOptions): Promise<TaskRef>;
  /**
   * Claims the id only inside the task; until that ends the new VM is locked, has no name and a description of
   * Proxmox's own at first, and the task's UPID names the *source*. VM_ID_TAKEN may come as rejection or as the task's message.
   */
  cloneVm(order: CloneVmOrder, options?: CallOptions): Promise<TaskRef>;
  /** Applied when it resolves (a running VM may keep some options pending until its next start). Idempotent. */
  configureVm(vm: VmRef, change: VmChange, options?: CallOptions): Promise<void>;
  /** Grows only. Already at least that large: resolves with undefined, nothing started. */
  growDisk(
    vm: VmRef,
    disk: { readonly slot: string; readonly bytes: number },
    options?: CallOptions,
  ): Promise<TaskRef | undefined>;

  /** Already running: the task fails; ask `vmState` first. */
  startVm(vm: VmRef, options?: CallOptions): Promise<TaskRef>;
  /** Asks the guest, waits `timeoutMs`, then pulls the plug. Already stopped: the task succeeds. */
  shutdownVm(vm: VmRef, timeoutMs: number, options?: CallOptions): Promise<TaskRef>;
  /** Pulls the plug, also while a shutdown waits. Already stopped: the task succeeds. */
  stopVm(vm: VmRef, options?: CallOptions): Promise<TaskRef>;
  /**
   * Disks, jobs and references too; never ISOs. Must be stopped. Already gone: resolves with undefined. Destroys on the
   * host that is named, where the caller has looked at it, and nowhere else: Conflict/VM_CHANGED when the id is on another
   * host meanwhile.
   */
  destroyVm(vm: VmRef, options?: CallOptions): Promise<TaskRef | undefined>;

  /** NotFound/TASK_NOT_FOUND when the record is gone: look at the VM instead. */
  task(task: TaskRef, options?: CallOptions): Promise<TaskStatus>;
  /** Tasks of ours that still run, by type (`qmclone`, `qmcreate`, `imgcopy`, …) on one host. */
  runningTasks(host: string, type: string, options?: CallOptions): Promise<readonly TaskRef[]>;
  /** The last lines of a task's log, for the reason of a failure. */
  taskLog(task: TaskRef, lines: number, options?: CallOptions): Promise<readonly string[]>;

  /** What a storage holds of one content type, as one host sees it. */
  volumes(
    host: string,
    storage: string,
    content: string,
    options?: CallOptions,
  ): Promise<readonly Volume[]>;
  /** Already there with that checksum: the task succeeds without downloading. */
  downloadImage(order: ImageOrder, options?: CallOptions): Promise<TaskRef>;
  /** Overwrites a file of that name. Usable only after its task. The volume id is `<storage>:iso/<name>`. */
  uploadIso(
    file: {
      readonly host: string;
      readonly storage: string;
      readonly name: string;
      readonly bytes: Uint8Array;
    },
    options?: CallOptions,
  ): Promise<TaskRef>;
  /** Finished when it resolves. Already gone: resolves. */
  deleteVolume(host: string, volumeId: string, options?: CallOptions): Promise<void>;

  /** Whether the guest agent answers. False while booting; rejects only when the host cannot be asked. */
  guestIsUp(vm: VmRef, options?: CallOptions): Promise<boolean>;
  /** Unreachable/GUEST_AGENT_SILENT while the agent does not answer. */
  guestInterfaces(vm: VmRef, options?: CallOptions): Promise<readonly GuestInterface[]>;
  /** Runs to its end. Not idempotent; TimedOut leaves it running in the guest. */
  guestExec(
    vm: VmRef,
    command: GuestCommand,
    options?: CallOptions,
  ): Promise<{ readonly exitCode: number; readonly output: string; readonly errorOutput: string }>;

  /** What the credentials may do on a path: privilege names. */
  permissions(path: string, options?: CallOptions): Promise<readonly string[]>;
  close(): Promise<void>;
}
