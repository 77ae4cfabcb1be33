// SPDX-License-Identifier: Apache-2.0
import type { Host } from '../model/host.ts';
import type { TaskKind } from '../model/machine.ts';
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
  /** Name of the lock that is set, for messages. */
  readonly lock: string | undefined;
  /** A create or clone task holds it: it has no identity yet, and is removed again when the task fails. */
  readonly isBeingCreated: boolean;
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
  /** Name of the lock that is set, for messages. */
  readonly lock: string | undefined;
  /** A create or clone task holds it: it has no identity yet, and is removed again when the task fails. */
  readonly isBeingCreated: boolean;
  /** The hypervisor refuses to destroy it and to remove its drives. */
  readonly isProtected: boolean;
  readonly isTemplate: boolean;
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Undefined for a VM without disks. */
  readonly bootDisk: BootDisk | undefined;
  /** Volume id of the seed ISO that is attached; undefined where none is. */
  readonly seedVolume: string | undefined;
  /** Static addresses that the configuration gives to the guest, in CIDR form. */
  readonly addresses: readonly string[];
}

export interface BootDisk {
  readonly storage: string;
  /** 0 where the configuration does not contain the size. */
  readonly bytes: number;
}

export interface VmState extends VmRef {
  readonly power: 'running' | 'stopped';
  readonly lock: string | undefined;
  readonly uptimeSeconds: number;
}

/** A task that was started. Only the host that runs it can report its state. */
export interface TaskRef {
  /** Opaque to callers. */
  readonly upid: string;
  readonly kind: TaskKind;
  readonly host: string;
}

export interface RunningTask extends TaskRef {
  /** VM id of the VM (of a clone: of the *source*), or the file name of a download; undefined where the task has none. */
  readonly subject: number | string | undefined;
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
  /** In total, over all sockets. */
  readonly cpus: number;
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
  /** All that a clone accepts of an identity; tags and SMBIOS UUID follow with `applySpec`. */
  readonly name: string;
  readonly description: string;
  readonly resourcePool?: string;
}

/** What a cloned VM must become. Its networks have MAC addresses: one without differs from any that is stored. */
export interface VmSpec {
  readonly tags: readonly string[];
  readonly smbiosUuid: string;
  readonly hardware: VmHardware;
  readonly disk: DiskOptions;
  /** A seed ISO will be attached: cloud-init drives of the template are removed. */
  readonly hasSeed: boolean;
}

/** `iso`: seed ISOs. `import`: disk images. */
export type VolumeContent = 'iso' | 'import';

export interface Volume {
  readonly id: string;
  /** File name, without storage and content type. */
  readonly name: string;
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

export interface ChangeOptions extends CallOptions {
  /**
   * Of the configuration that the change was decided on: Conflict/VM_CHANGED when the configuration has changed since.
   * A change with a digest is not retried inside: the second attempt would be refused although the first had its effect.
   */
  readonly digest?: string | undefined;
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
  /**
   * Brings a clone to its spec: tags, SMBIOS UUID, hardware, disk options and networks. Removes what the clone inherits
   * from its template and must not keep: the protection and, with `hasSeed`, cloud-init drives. Writes only what differs.
   * Resolves with whether anything was written; then the digest has changed.
   */
  applySpec(vm: VmRef, spec: VmSpec, options?: ChangeOptions): Promise<boolean>;
  /** Replaces the seed ISO that is attached. Idempotent. */
  attachSeed(vm: VmRef, volumeId: string, options?: ChangeOptions): Promise<void>;
  /** Leaves the drive empty. Idempotent. */
  ejectSeed(vm: VmRef, options?: ChangeOptions): Promise<void>;
  /** With `removeProtection` in the same change. Idempotent. */
  setDescription(
    vm: VmRef,
    description: string,
    options?: ChangeOptions & { readonly removeProtection?: boolean },
  ): Promise<void>;
  /** Idempotent. */
  removeProtection(vm: VmRef, options?: ChangeOptions): Promise<void>;
  /** Grows only. Already at least that large: resolves with undefined, nothing started. */
  growBootDisk(vm: VmRef, bytes: number, options?: CallOptions): Promise<TaskRef | undefined>;

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
  /** Tasks of one kind on one host that our account started and that still run. */
  runningTasks(
    host: string,
    kind: Exclude<TaskKind, 'other'>,
    options?: CallOptions,
  ): Promise<readonly RunningTask[]>;
  /** The last lines of a task's log, for the reason of a failure. */
  taskLog(task: TaskRef, lines: number, options?: CallOptions): Promise<readonly string[]>;

  /** The id of the volume of that name, whether it exists or not. */
  volumeId(file: {
    readonly storage: string;
    readonly content: VolumeContent;
    readonly name: string;
  }): string;
  /** What a storage holds of one content type, as one host sees it. */
  volumes(
    host: string,
    storage: string,
    content: VolumeContent,
    options?: CallOptions,
  ): Promise<readonly Volume[]>;
  /** Already there with that checksum: the task succeeds without downloading. */
  downloadImage(order: ImageOrder, options?: CallOptions): Promise<TaskRef>;
  /** Overwrites a file of that name. Usable only after its task. `volumeId` returns its id. */
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
