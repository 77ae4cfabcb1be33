// SPDX-License-Identifier: Apache-2.0
// The effect of each call of MemoryHypervisor on the region, without delays and injected failures.
import type { Clock } from '../clock.ts';
import { Conflict, InvalidConfig, NotFound, Unreachable } from '../errors.ts';
import type {
  CloneVmOrder,
  CreateVmOrder,
  GuestInterface,
  ImageOrder,
  TaskRef,
  VmRef,
  VmSpec,
  VmState,
  Volume,
  VolumeContent,
} from '../hypervisor.ts';
import type { Random } from '../random.ts';
import type { MemoryRegion, MemoryVm, MemoryVolume, TaskOrder } from './memory-region.ts';
import {
  formatDisk,
  formatVolumeId,
  orderOptions,
  parseDiskBytes,
  SEED_OPTION,
  specOptions,
  toVmConfig,
} from './memory-vm.ts';

export interface OperationOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly taskMs: number;
  readonly bootMs: number;
}

/** Options to set and to remove. */
export interface OptionChange {
  readonly set?: Readonly<Record<string, string>>;
  readonly remove?: readonly string[];
  readonly digest: string;
}

type TaskWork = Omit<TaskOrder, 'host' | 'durationMs' | 'subject'> & {
  readonly durationMs?: number;
  readonly subject?: string;
};

export class MemoryOperations {
  readonly #region: MemoryRegion;
  readonly #options: OperationOptions;

  constructor(state: MemoryRegion, options: OperationOptions) {
    this.#region = state;
    this.#options = options;
  }

  requireVm({ vmId }: VmRef): MemoryVm {
    const vm = this.#region.vms.get(vmId);
    if (vm === undefined) {
      throw new NotFound('VM_NOT_FOUND', `VM ${vmId} does not exist on any host of the region`, {
        facts: { vmId },
      });
    }
    this.requireHost(vm.host);
    return vm;
  }

  vmState(ref: VmRef): VmState {
    const { vmId, host, startedAt, options } = this.requireVm(ref);
    const lock = options.get('lock');
    if (startedAt === undefined) return { vmId, host, power: 'stopped', lock, uptimeSeconds: 0 };
    const uptimeSeconds = Math.floor((this.#now() - startedAt) / 1_000);
    return { vmId, host, power: 'running', lock, uptimeSeconds };
  }

  create(order: CreateVmOrder): TaskRef {
    const vm = this.#claimVmId(order, new Map([['lock', 'create']]));
    const { importFrom } = order.disk;
    return this.#startTask(order, {
      kind: 'create',
      finish: () => {
        if (importFrom !== undefined) this.#requireVolume(order.host, importFrom);
        vm.options.delete('lock');
        for (const [name, value] of orderOptions(order)) vm.options.set(name, value);
      },
      undo: () => this.#region.vms.delete(order.vmId),
    });
  }

  clone(order: CloneVmOrder): TaskRef {
    const source = this.#region.vms.get(order.source.vmId);
    if (source === undefined) {
      throw new NotFound(
        'TEMPLATE_NOT_FOUND',
        `VM ${order.source.vmId} does not exist on any host of the region`,
      );
    }
    if (order.linked && source.options.get('template') !== '1') {
      throw new InvalidConfig('PARAMETER_REFUSED', 'Linked clone feature is not supported');
    }
    // Proxmox sets a temporary description until the task ends.
    const temporary = [
      ['lock', 'clone'],
      ['description', ' temporary description of a clone'],
    ] as const;
    const copy = this.#claimVmId(order, new Map(temporary));
    const disk = source.options.get('scsi0') ?? '';
    return this.#startTask(source, {
      kind: 'clone',
      finish: () => {
        copy.options.clear();
        for (const [name, value] of source.options) copy.options.set(name, value);
        copy.options.delete('template');
        copy.options.set('name', order.name).set('description', order.description);
        copy.options.set('smbios1', `uuid=${this.#options.random.uuid()}`);
        const storage = order.storage ?? disk.split(':')[0] ?? 'local';
        copy.options.set('scsi0', formatDisk(order.vmId, storage, parseDiskBytes(disk)));
      },
      undo: () => this.#region.vms.delete(order.vmId),
    });
  }

  applySpec(ref: VmRef, spec: VmSpec, digest: string): boolean {
    const vm = this.requireVm(ref);
    requireDigest(vm, digest);
    const { options } = vm;
    const set = Object.fromEntries(
      specOptions(spec).filter(([name, value]) => options.get(name) !== value),
    );
    const inherited = [...options]
      .filter(([name, value]) => name !== SEED_OPTION && /[:-]cloudinit\b/.test(value))
      .map(([name]) => name);
    if (options.has('protection')) {
      // Like Proxmox, which removes no drives of a protected VM: a change of its own.
      this.configure(ref, { remove: ['protection'], digest });
      return true;
    }
    const remove = spec.hasSeed ? inherited : [];
    if (Object.keys(set).length === 0 && remove.length === 0) return false;
    this.configure(ref, { set, remove, digest });
    return true;
  }

  configure(ref: VmRef, change: OptionChange): void {
    const vm = this.#requireUnlocked(ref);
    requireDigest(vm, change.digest);
    for (const [name, value] of Object.entries(change.set ?? {})) vm.options.set(name, value);
    for (const name of change.remove ?? []) vm.options.delete(name);
    vm.revision += 1;
  }

  grow(ref: VmRef, bytes: number, digest: string): TaskRef | undefined {
    const vm = this.requireVm(ref);
    requireDigest(vm, digest);
    const stored = vm.options.get('scsi0');
    if (stored === undefined) throw new NotFound('VOLUME_NOT_FOUND', `VM ${vm.vmId} has no disk`);
    if (parseDiskBytes(stored) >= bytes) return undefined;
    const grown = formatDisk(vm.vmId, stored.split(':')[0] ?? 'local', bytes);
    return this.#startTask(vm, {
      kind: 'resize',
      finish: () => {
        const current = this.#requireUnlocked(ref);
        requireDigest(current, digest);
        current.options.set('scsi0', grown);
        current.revision += 1;
      },
    });
  }

  start(ref: VmRef): TaskRef {
    return this.#startTask(this.requireVm(ref), {
      kind: 'start',
      finish: () => {
        const vm = this.#requireUnlocked(ref);
        if (vm.startedAt !== undefined) {
          throw new Conflict('VM_CHANGED', `VM ${vm.vmId} already running`);
        }
        for (const value of vm.options.values()) {
          const iso = /^([^:,]+:iso\/[^,]+)/.exec(value)?.[1];
          if (iso !== undefined) this.#requireVolume(vm.host, iso);
        }
        vm.startedAt = this.#now();
      },
    });
  }

  powerOff(ref: VmRef, kind: 'shutdown' | 'stop', timeoutMs: number): TaskRef {
    const vm = this.requireVm(ref);
    return this.#startTask(vm, {
      kind,
      durationMs: Math.min(timeoutMs, this.#options.taskMs),
      finish: () => {
        vm.startedAt = undefined;
      },
    });
  }

  convertToTemplate(ref: VmRef): TaskRef {
    const vm = this.requireVm(ref);
    if (vm.startedAt !== undefined) {
      throw new Conflict(
        'VM_CHANGED',
        `you can't convert VM ${vm.vmId} to template if it is running`,
      );
    }
    return this.#startTask(vm, {
      kind: 'template',
      finish: () => void vm.options.set('template', '1'),
    });
  }

  destroy(ref: VmRef): TaskRef | undefined {
    if (!this.#region.vms.has(ref.vmId)) return undefined;
    const vm = this.requireVm(ref);
    if (vm.startedAt !== undefined) {
      throw new Conflict('VM_CHANGED', `VM ${vm.vmId} is running - destroy failed`);
    }
    if (vm.options.get('protection') === '1') {
      const message = `can't remove VM ${vm.vmId} - protection mode enabled`;
      throw new Conflict('VM_LOCKED', message);
    }
    return this.#startTask(vm, {
      kind: 'destroy',
      finish: () => {
        this.#requireUnlocked(ref);
        this.#region.vms.delete(ref.vmId);
      },
    });
  }

  volumes(
    at: { readonly host: string; readonly storage: string },
    content: VolumeContent,
  ): Volume[] {
    this.#isStorageShared(at.host, at.storage);
    return [...this.#region.volumes.values()]
      .filter((volume) => volume.storage === at.storage && volume.content === content)
      .filter((volume) => volume.host === undefined || volume.host === at.host)
      .map(({ id, name, bytes }) => ({ id, name, bytes, content }));
  }

  download(order: ImageOrder): TaskRef {
    const name = order.fileName;
    const id = formatVolumeId({ storage: order.storage, content: 'import', name });
    const checksum = order.checksum?.hex;
    this.#isStorageShared(order.host, order.storage);
    return this.#startTask(order, {
      kind: 'download',
      subject: order.fileName,
      finish: () => {
        const existing = this.#volume(order.host, id);
        if (existing !== undefined && (checksum === undefined || existing.checksum !== checksum)) {
          throw new InvalidConfig('PARAMETER_REFUSED', 'refusing to override existing file');
        }
        const known = checksum === undefined ? {} : { checksum };
        this.#storeVolume(order, { id, name, bytes: 1_024, content: 'import', ...known });
      },
    });
  }

  upload(file: { host: string; storage: string; name: string; bytes: Uint8Array }): TaskRef {
    const { storage, name } = file;
    const id = formatVolumeId({ storage, content: 'iso', name });
    this.#isStorageShared(file.host, file.storage);
    const { bytes: data } = file;
    const volume = { id, name, bytes: data.length, content: 'iso', data } as const;
    return this.#startTask(file, { kind: 'upload', finish: () => this.#storeVolume(file, volume) });
  }

  deleteVolume(host: string, id: string): void {
    this.#region.volumes.delete(this.#volumeKey(host, id));
  }

  isGuestUp(ref: VmRef): boolean {
    const { startedAt } = this.requireVm(ref);
    return startedAt !== undefined && this.#now() - startedAt >= this.#options.bootMs;
  }

  requireGuest(ref: VmRef): void {
    if (this.isGuestUp(ref)) return;
    throw new Unreachable('GUEST_AGENT_SILENT', 'QEMU guest agent is not running', {
      facts: { vmId: ref.vmId },
    });
  }

  interfaces(ref: VmRef): readonly GuestInterface[] {
    this.requireGuest(ref);
    const { addresses } = toVmConfig(this.requireVm(ref));
    const own = `10.${(ref.vmId >> 16) & 255}.${(ref.vmId >> 8) & 255}.${ref.vmId & 255}/8`;
    const shown = addresses.length > 0 ? addresses : [own];
    return [{ name: 'eth0', mac: 'bc:24:11:00:00:01', addresses: shown }];
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }

  #claimVmId(order: VmRef, options: Map<string, string>): MemoryVm {
    this.requireHost(order.host);
    const isContainer = this.#region.containers.some((one) => one.vmId === order.vmId);
    if (this.#region.vms.has(order.vmId) || isContainer) {
      throw new Conflict('VM_ID_TAKEN', `VM ${order.vmId} already exists`);
    }
    const { vmId, host } = order;
    const vm: MemoryVm = { vmId, host, options, revision: 1, startedAt: undefined };
    this.#region.vms.set(vmId, vm);
    return vm;
  }

  #requireUnlocked(ref: VmRef): MemoryVm {
    const vm = this.requireVm(ref);
    const lock = vm.options.get('lock');
    if (lock === undefined) return vm;
    throw new Conflict('VM_LOCKED', `VM is locked (${lock})`, { facts: { lock } });
  }

  #startTask(at: { readonly host: string; readonly vmId?: number }, work: TaskWork): TaskRef {
    const subject = work.subject ?? at.vmId;
    const durationMs = work.durationMs ?? this.#options.taskMs;
    return this.#region.startTask({ ...work, host: at.host, subject, durationMs }, this.#now());
  }

  requireHost(name: string): void {
    const host = this.#region.hosts.find((candidate) => candidate.name === name);
    if (host === undefined) throw new NotFound('HOST_NOT_FOUND', `host ${name} does not exist`);
    if (!host.online) {
      throw new Unreachable('PVE_HOST_UNREACHABLE', `host ${name} does not respond`, {
        facts: { host: name, requestSent: false },
      });
    }
  }

  #isStorageShared(hostName: string, storageName: string): boolean {
    this.requireHost(hostName);
    const host = this.#region.hosts.find((candidate) => candidate.name === hostName);
    const storage = host?.storages.find((candidate) => candidate.name === storageName);
    if (storage === undefined) {
      throw new NotFound('STORAGE_NOT_FOUND', `storage '${storageName}' does not exist`);
    }
    return storage.shared;
  }

  #volumeKey(host: string, id: string): string {
    return this.#isStorageShared(host, id.split(':')[0] ?? '') ? id : `${host}/${id}`;
  }

  #volume(host: string, id: string): MemoryVolume | undefined {
    return this.#region.volumes.get(this.#volumeKey(host, id));
  }

  #requireVolume(host: string, id: string): void {
    if (this.#volume(host, id) !== undefined) return;
    throw new NotFound('VOLUME_NOT_FOUND', `volume '${id}' does not exist`);
  }

  #storeVolume(
    at: { readonly host: string; readonly storage: string },
    volume: Omit<MemoryVolume, 'storage' | 'host'>,
  ): void {
    const host = this.#isStorageShared(at.host, at.storage) ? undefined : at.host;
    const stored = { ...volume, storage: at.storage, host };
    this.#region.volumes.set(this.#volumeKey(at.host, volume.id), stored);
  }
}

function requireDigest(vm: MemoryVm, digest: string): void {
  if (digest === toVmConfig(vm).digest) return;
  throw new Conflict('VM_CHANGED', 'checksum mismatch (file change by other user?)');
}
