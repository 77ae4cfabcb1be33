// SPDX-License-Identifier: Apache-2.0
import type { Host } from '../model/host.ts';
import type { TaskKind } from '../model/machine.ts';
import type { PvescalerError } from './errors.ts';

/** A VM and its last known host. If the VM has moved, the adapter finds its new host. */
export interface VmRef {
  readonly vmId: number;
  readonly host: string;
}

/** One VM in a RegionView. */
export interface VmSummary extends VmRef {
  /** Undefined for up to ten seconds after creation: the list of Proxmox is delayed. */
  readonly name: string | undefined;
  /** May be outdated; `vmState` returns the current state. `unknown` for a new VM, or while its host is down. */
  readonly power: 'running' | 'stopped' | 'unknown';
  /** Lower case, sorted. For lists, never as proof of ownership. */
  readonly tags: readonly string[];
  readonly isTemplate: boolean;
  /** Name of the lock, for messages. */
  readonly lock: string | undefined;
  /** A create or clone task is in progress: the VM has no identity yet, and Proxmox removes it if the task fails. */
  readonly isBeingCreated: boolean;
  /** Configured, not usage. Undefined while unknown, for example while the VM is being created. */
  readonly cpus: number | undefined;
  readonly memoryBytes: number | undefined;
}

/** Containers use capacity of their host; pvescaler never changes them. */
export interface ContainerSummary {
  readonly vmId: number;
  readonly host: string;
  readonly power: 'running' | 'stopped' | 'unknown';
  readonly isTemplate: boolean;
  /** Configured; without a limit, all CPUs of the host. Undefined while unknown. */
  readonly cpus: number | undefined;
  readonly memoryBytes: number | undefined;
}

export interface RegionView {
  readonly region: string;
  /** Wall clock at the end of the read. */
  readonly takenAt: number;
  readonly version: string;
  readonly hosts: readonly Host[];
  readonly vms: readonly VmSummary[];
  readonly containers: readonly ContainerSummary[];
  /** Ids of VMs and containers, which share one number range. */
  readonly takenVmIds: readonly number[];
}

/** A VM's configuration, including pending changes. */
export interface VmConfig extends VmRef {
  /** Changes with the configuration. Pass it to a change to detect concurrent changes. */
  readonly digest: string;
  readonly name: string | undefined;
  readonly description: string | undefined;
  readonly tags: readonly string[];
  /** Lower case; undefined if none is set. */
  readonly smbiosUuid: string | undefined;
  /** Name of the lock, for messages. */
  readonly lock: string | undefined;
  /** A create or clone task is in progress: the VM has no identity yet, and Proxmox removes it if the task fails. */
  readonly isBeingCreated: boolean;
  /** The hypervisor refuses to destroy the VM and to remove its drives. */
  readonly isProtected: boolean;
  readonly isTemplate: boolean;
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Undefined for a VM without disks. */
  readonly bootDisk: BootDisk | undefined;
  /** Volume id of the attached seed ISO. */
  readonly seedVolume: string | undefined;
  /** Static addresses in the configuration, in CIDR form. */
  readonly addresses: readonly string[];
}

export interface BootDisk {
  readonly storage: string;
  /** 0 if the configuration does not contain the size. */
  readonly bytes: number;
  /** The template that the disk of a linked clone needs. */
  readonly baseVmId?: number;
}

export interface VmState extends VmRef {
  readonly power: 'running' | 'stopped';
  readonly lock: string | undefined;
  readonly uptimeSeconds: number;
}

/** A started task. Only the host that runs it can report its status. */
export interface TaskRef {
  /** Opaque to callers. */
  readonly upid: string;
  readonly kind: TaskKind;
  readonly host: string;
}

export interface RunningTask extends TaskRef {
  /** VM id (of a clone task: of the *source*), or file name of a download; undefined if the task has none. */
  readonly subject: number | string | undefined;
}

export type TaskStatus =
  | { readonly state: 'running' }
  /** `warnings` > 0 is success with warnings, never a failure. */
  | {
      readonly state: 'ended';
      readonly succeeded: boolean;
      readonly warnings: number;
      readonly message: string;
      /** The message of a failed task as an error: VM_ID_TAKEN, LOCK_TIMED_OUT, TASK_FAILED, … */
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

/** Identifies the VM as ours; part of the call that creates it. */
export interface VmIdentity {
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly smbiosUuid: string;
}

export interface VmHardware {
  /** Total over all sockets. */
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

/** How a disk is attached. Defaults: `discard` on, `iothread` on if the controller supports it. */
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
  /** A clone call accepts only name and description; `applySpec` sets tags and SMBIOS UUID. */
  readonly name: string;
  readonly description: string;
  readonly resourcePool?: string;
}

/** The desired state of a cloned VM. Networks need a MAC address: without one they differ from every stored network. */
export interface VmSpec {
  readonly tags: readonly string[];
  readonly smbiosUuid: string;
  readonly hardware: VmHardware;
  readonly disk: DiskOptions;
  /** A seed ISO will be attached, so cloud-init drives of the template are removed. */
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
  /** In CIDR form, without loopback and link-local addresses. */
  readonly addresses: readonly string[];
}

export interface GuestCommand {
  /** Program and arguments, without a shell. No secrets here: the guest's process list shows them. */
  readonly command: readonly string[];
  /** Standard input; may contain secrets. */
  readonly input?: string;
  readonly timeoutMs: number;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface ChangeOptions extends CallOptions {
  /**
   * Digest of the configuration in which the caller verified that the VM is its own. Rejects with Conflict/VM_CHANGED if
   * the configuration has changed since, or if the id now belongs to another VM. Such a change is not retried: a second
   * attempt is refused if the first one succeeded.
   */
  readonly digest: string;
}

export interface DescriptionOptions extends ChangeOptions {
  readonly removeProtection?: boolean;
  readonly tags?: readonly string[];
}

/**
 * One region: a Proxmox VE cluster or a single host.
 *
 * Rejects only with a PvescalerError: Unreachable and TimedOut (the call may have taken effect unless `facts.requestSent`
 * is false), Unauthorized, Conflict, NotFound, NoCapacity, InvalidConfig, UnsupportedVersion, TaskFailed, Cancelled. Reads
 * are retried. A call that starts a task is never retried: if its response is lost, the caller reads the VM to find out
 * whether the call took effect.
 *
 * A method that returns a TaskRef has *started* the work when it resolves; `task` returns its end. Other methods have
 * *finished* the work.
 */
export interface Hypervisor {
  readonly region: string;

  /** Hosts, storages, VMs and containers. One request, plus one for each new or changed VM. */
  view(options?: CallOptions): Promise<RegionView>;
  /** NotFound/VM_NOT_FOUND only if no host of the region has the VM; never because a host is down. */
  vmConfig(vm: VmRef, options?: CallOptions): Promise<VmConfig>;
  /** Current power state and lock, from the VM's host. */
  vmState(vm: VmRef, options?: CallOptions): Promise<VmState>;

  /**
   * Claims the id: when it resolves, the VM exists with lock `create` and without identity. The identity is set when the
   * task succeeds; until then the owner of the VM is unknown, unless one of our tasks names it. A failed task removes the
   * VM. Conflict/VM_ID_TAKEN if the id is in use: nothing was created.
   */
  createVm(order: CreateVmOrder, options?: CallOptions): Promise<TaskRef>;
  /**
   * The task claims the id. Until it ends the new VM is locked, has no name and first a temporary description set by
   * Proxmox, and the task's UPID names the *source*. VM_ID_TAKEN is a rejection or the failure of the task.
   */
  cloneVm(order: CloneVmOrder, options?: CallOptions): Promise<TaskRef>;
  /**
   * Applies a spec to a clone: tags, SMBIOS UUID, hardware, disk options and networks. Removes protection and, with
   * `hasSeed`, cloud-init drives inherited from the template. Writes only differences. Resolves with true if something was
   * written: the digest has changed, and more may remain to be written. Read the VM and call again until it resolves with
   * false.
   */
  applySpec(vm: VmRef, spec: VmSpec, options: ChangeOptions): Promise<boolean>;
  /** Replaces the attached seed ISO. Idempotent. */
  attachSeed(vm: VmRef, volumeId: string, options: ChangeOptions): Promise<void>;
  /** Leaves the drive empty. Idempotent. */
  ejectSeed(vm: VmRef, options: ChangeOptions): Promise<void>;
  /** `removeProtection` and `tags`, which replace all tags of the VM, are part of the same change. Idempotent. */
  setDescription(vm: VmRef, description: string, options: DescriptionOptions): Promise<void>;
  /** Idempotent. */
  removeProtection(vm: VmRef, options: ChangeOptions): Promise<void>;
  /** Never shrinks. Resolves with undefined, without a task, if the disk is large enough. VM_CHANGED also as task failure. */
  growBootDisk(vm: VmRef, bytes: number, options: ChangeOptions): Promise<TaskRef | undefined>;

  /** The task fails if the VM is already running; check `vmState` first. */
  startVm(vm: VmRef, options?: CallOptions): Promise<TaskRef>;
  /** Requests a guest shutdown; stops the VM after `timeoutMs`. The task succeeds if the VM is already stopped. */
  shutdownVm(vm: VmRef, timeoutMs: number, options?: CallOptions): Promise<TaskRef>;
  /** Stops the VM immediately, also during a shutdown. The task succeeds if the VM is already stopped. */
  stopVm(vm: VmRef, options?: CallOptions): Promise<TaskRef>;
  /**
   * Destroys a stopped VM with its disks, jobs and references, but not its ISOs. Resolves with undefined if the VM does not
   * exist. Destroys only on the host in `vm`, where the caller has verified the VM: Conflict/VM_CHANGED if the id is now on
   * another host.
   */
  destroyVm(vm: VmRef, options?: CallOptions): Promise<TaskRef | undefined>;

  /** Converts a stopped VM to a template, which can be cloned and never be started. */
  convertToTemplate(vm: VmRef, options?: CallOptions): Promise<TaskRef>;

  /** Fingerprints of the hosts' certificates by host name, for hosts whose certificate the cluster knows. */
  hostFingerprints(options?: CallOptions): Promise<ReadonlyMap<string, string>>;

  /** NotFound/TASK_NOT_FOUND if the task record no longer exists; read the VM instead. */
  task(task: TaskRef, options?: CallOptions): Promise<TaskStatus>;
  /** Running tasks of one kind on one host that our user started. */
  runningTasks(
    host: string,
    kind: Exclude<TaskKind, 'other'>,
    options?: CallOptions,
  ): Promise<readonly RunningTask[]>;
  /** The last lines of a task's log. */
  taskLog(task: TaskRef, lines: number, options?: CallOptions): Promise<readonly string[]>;

  /** Formats the volume id; the volume need not exist. */
  volumeId(file: {
    readonly storage: string;
    readonly content: VolumeContent;
    readonly name: string;
  }): string;
  /**
   * Bytes that VM disks can use on each active storage of a host. The view only estimates them: reserved blocks and quotas
   * count as free there. The host queries its storages, so one that does not respond delays the answer; rejects within ten
   * seconds.
   */
  storageSpace(host: string, options?: CallOptions): Promise<ReadonlyMap<string, number>>;
  /** Volumes of one content type in a storage of a host. */
  volumes(
    host: string,
    storage: string,
    content: VolumeContent,
    options?: CallOptions,
  ): Promise<readonly Volume[]>;
  /** The task succeeds without a download if the file exists with that checksum. */
  downloadImage(order: ImageOrder, options?: CallOptions): Promise<TaskRef>;
  /** Overwrites an existing file. The file is usable when the task has ended; `volumeId` returns its id. */
  uploadIso(
    file: {
      readonly host: string;
      readonly storage: string;
      readonly name: string;
      readonly bytes: Uint8Array;
    },
    options?: CallOptions,
  ): Promise<TaskRef>;
  /** Resolves when the volume is deleted or does not exist. */
  deleteVolume(host: string, volumeId: string, options?: CallOptions): Promise<void>;

  /** Whether the guest agent responds. False while booting; rejects if the host cannot be reached. */
  guestIsUp(vm: VmRef, options?: CallOptions): Promise<boolean>;
  /** Unreachable/GUEST_AGENT_SILENT while the agent does not respond. */
  guestInterfaces(vm: VmRef, options?: CallOptions): Promise<readonly GuestInterface[]>;
  /** Waits for the end of the command. Not idempotent; TimedOut leaves the command running. */
  guestExec(
    vm: VmRef,
    command: GuestCommand,
    options?: CallOptions,
  ): Promise<{ readonly exitCode: number; readonly output: string; readonly errorOutput: string }>;

  /** Names of the privileges that the credentials have on a path. */
  permissions(path: string, options?: CallOptions): Promise<readonly string[]>;
  close(): Promise<void>;
}
