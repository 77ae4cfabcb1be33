// SPDX-License-Identifier: Apache-2.0
import type { Host } from '../../model/host.ts';
import type { TaskKind } from '../../model/machine.ts';
import type { Clock } from '../clock.ts';
import { Cancelled, type PvescalerError, Unreachable } from '../errors.ts';
import type {
  CallOptions,
  ChangeOptions,
  CloneVmOrder,
  CreateVmOrder,
  DescriptionOptions,
  GuestCommand,
  Hypervisor,
  ImageOrder,
  RegionView,
  TaskRef,
  VmRef,
  VmSpec,
  VolumeContent,
} from '../hypervisor.ts';
import type { Random } from '../random.ts';
import { MemoryOperations } from './memory-operations.ts';
import { MemoryRegion } from './memory-region.ts';
import { formatVolumeId, SEED_OPTION, toVmConfig, toVmSummary } from './memory-vm.ts';

export type HypervisorMethod = Exclude<keyof Hypervisor, 'region' | 'close' | 'volumeId'>;

export interface HypervisorCall {
  readonly method: HypervisorMethod;
  readonly vmId?: number;
  readonly host?: string;
}

export interface MemoryHypervisorOptions {
  readonly region?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly hosts: readonly Host[];
  readonly version?: string;
  readonly taskMs?: number;
  /** From start until the guest agent responds. */
  readonly bootMs?: number;
}

type GuestResult = Awaited<ReturnType<Hypervisor['guestExec']>>;

/**
 * A region in memory. Tasks and boots take time on the clock. Tests can make the next call or task fail, or lose the
 * response of a call that took effect. `onCall` is called before every call takes effect.
 */
export class MemoryHypervisor implements Hypervisor {
  readonly region: string;
  readonly state: MemoryRegion;
  readonly calls: HypervisorCall[] = [];
  onCall: ((call: HypervisorCall) => void) | undefined;
  /** Executes a command in a guest. */
  guestCommand: (vm: VmRef, command: GuestCommand) => GuestResult = (_vm, command) => ({
    exitCode: 0,
    output: command.input ?? '',
    errorOutput: '',
  });
  /** Privileges of the credentials on every path. */
  privileges: readonly string[] = ['Datastore.Allocate', 'VM.Allocate', 'VM.Audit'];
  readonly #version: string;
  readonly #clock: Clock;
  readonly #operations: MemoryOperations;
  readonly #failures = new Map<HypervisorMethod, PvescalerError[]>();
  readonly #responsesToDrop = new Map<HypervisorMethod, number>();
  #isClosed = false;

  readonly #random: Random;
  /** Chosen when the fingerprints are first read. */
  #fingerprintPrefix: string | undefined;

  constructor(options: MemoryHypervisorOptions) {
    this.#random = options.random;
    this.region = options.region ?? 'memory';
    this.state = new MemoryRegion(options.hosts);
    this.#version = options.version ?? '9.2.1';
    this.#clock = options.clock;
    this.#operations = new MemoryOperations(this.state, {
      clock: options.clock,
      random: options.random,
      taskMs: options.taskMs ?? 5_000,
      bootMs: options.bootMs ?? 20_000,
    });
  }

  /** The next call of the method rejects with the error and has no effect. */
  failNext(method: HypervisorMethod, error: PvescalerError): void {
    this.#failures.set(method, [...(this.#failures.get(method) ?? []), error]);
  }

  /** The next call of the method takes effect, but rejects as if its response was lost. */
  dropResponse(method: HypervisorMethod): void {
    this.#responsesToDrop.set(method, (this.#responsesToDrop.get(method) ?? 0) + 1);
  }

  /** The next task of that kind fails with the error. */
  failNextTask(kind: TaskKind, failure: PvescalerError): void {
    this.state.failNextTask(kind, failure);
  }

  /** Moves a VM, as a user or HA would. */
  move(vmId: number, host: string): void {
    const vm = this.state.vms.get(vmId);
    if (vm !== undefined) vm.host = host;
  }

  setOnline(hostName: string, online: boolean): void {
    const index = this.state.hosts.findIndex((host) => host.name === hostName);
    const host = this.state.hosts[index];
    if (host !== undefined) this.state.hosts[index] = { ...host, online };
  }

  view(options?: CallOptions): Promise<RegionView> {
    return this.#call({ method: 'view' }, options, () => {
      const online = new Set(this.state.hosts.filter((host) => host.online).map((h) => h.name));
      const vms = [...this.state.vms.values()].sort((a, b) => a.vmId - b.vmId);
      return {
        region: this.region,
        takenAt: this.#clock.now(),
        version: this.#version,
        hosts: [...this.state.hosts],
        vms: vms.map((vm) => toVmSummary(vm, online.has(vm.host))),
        containers: this.state.containers.map((one) =>
          online.has(one.host) ? one : { ...one, power: 'unknown' as const },
        ),
        takenVmIds: [...vms, ...this.state.containers]
          .map((guest) => guest.vmId)
          .sort((a, b) => a - b),
      };
    });
  }

  vmConfig(vm: VmRef, options?: CallOptions) {
    return this.#onVm('vmConfig', vm, {
      options,
      work: () => toVmConfig(this.#operations.requireVm(vm)),
    });
  }

  vmState(vm: VmRef, options?: CallOptions) {
    return this.#onVm('vmState', vm, { options, work: () => this.#operations.vmState(vm) });
  }

  createVm(order: CreateVmOrder, options?: CallOptions) {
    return this.#onVm('createVm', order, { options, work: () => this.#operations.create(order) });
  }

  cloneVm(order: CloneVmOrder, options?: CallOptions) {
    return this.#onVm('cloneVm', order, { options, work: () => this.#operations.clone(order) });
  }

  applySpec(vm: VmRef, spec: VmSpec, options: ChangeOptions) {
    const work = () => this.#operations.applySpec(vm, spec, options.digest);
    return this.#onVm('applySpec', vm, { options, work });
  }

  attachSeed(vm: VmRef, volumeId: string, options: ChangeOptions) {
    const set = { [SEED_OPTION]: `${volumeId},media=cdrom` };
    const work = () => this.#operations.configure(vm, { set, digest: options.digest });
    return this.#onVm('attachSeed', vm, { options, work });
  }

  ejectSeed(vm: VmRef, options: ChangeOptions) {
    const set = { [SEED_OPTION]: 'none,media=cdrom' };
    const work = () => this.#operations.configure(vm, { set, digest: options.digest });
    return this.#onVm('ejectSeed', vm, { options, work });
  }

  setDescription(vm: VmRef, description: string, options: DescriptionOptions) {
    const { removeProtection = false, tags, digest } = options;
    const remove = removeProtection ? ['protection'] : [];
    const set = { description, ...(tags !== undefined && { tags: tags.join(';') }) };
    const change = { set, remove, digest };
    const work = () => this.#operations.configure(vm, change);
    return this.#onVm('setDescription', vm, { options, work });
  }

  removeProtection(vm: VmRef, options: ChangeOptions) {
    const change = { remove: ['protection'], digest: options.digest };
    const work = () => this.#operations.configure(vm, change);
    return this.#onVm('removeProtection', vm, { options, work });
  }

  growBootDisk(vm: VmRef, bytes: number, options: ChangeOptions) {
    return this.#onVm('growBootDisk', vm, {
      options,
      work: () => this.#operations.grow(vm, bytes, options.digest),
    });
  }

  startVm(vm: VmRef, options?: CallOptions) {
    return this.#onVm('startVm', vm, { options, work: () => this.#operations.start(vm) });
  }

  shutdownVm(vm: VmRef, timeoutMs: number, options?: CallOptions) {
    const work = () => this.#operations.powerOff(vm, 'shutdown', timeoutMs);
    return this.#onVm('shutdownVm', vm, { options, work });
  }

  stopVm(vm: VmRef, options?: CallOptions) {
    const work = () => this.#operations.powerOff(vm, 'stop', 1_000);
    return this.#onVm('stopVm', vm, { options, work });
  }

  destroyVm(vm: VmRef, options?: CallOptions) {
    return this.#onVm('destroyVm', vm, { options, work: () => this.#operations.destroy(vm) });
  }

  convertToTemplate(vm: VmRef, options?: CallOptions) {
    const work = () => this.#operations.convertToTemplate(vm);
    return this.#onVm('convertToTemplate', vm, { options, work });
  }

  task(task: TaskRef, options?: CallOptions) {
    return this.#call({ method: 'task' }, options, () => {
      this.#operations.requireHost(task.host);
      return this.state.taskStatus(task);
    });
  }

  hostFingerprints(options?: CallOptions) {
    return this.#call({ method: 'hostFingerprints' }, options, () => {
      const prefix = (this.#fingerprintPrefix ??= this.#random.uuid());
      return new Map(this.state.hosts.map(({ name }) => [name, `${prefix}:${name}`]));
    });
  }

  runningTasks(host: string, kind: TaskKind, options?: CallOptions) {
    const call = { method: 'runningTasks', host } as const;
    return this.#call(call, options, () => {
      this.#operations.requireHost(host);
      return this.state.runningTasks(host, kind);
    });
  }

  taskLog(task: TaskRef, lines: number, options?: CallOptions) {
    return this.#call({ method: 'taskLog' }, options, () => this.state.log(task, lines));
  }

  volumeId(file: Parameters<Hypervisor['volumeId']>[0]): string {
    return formatVolumeId(file);
  }

  storageSpace(host: string, options?: CallOptions) {
    const call = { method: 'storageSpace', host } as const;
    return this.#call(call, options, () => {
      this.#operations.requireHost(host);
      return this.state.storageSpace(host);
    });
  }

  // oxlint-disable-next-line max-params -- the port's own order
  volumes(host: string, storage: string, content: VolumeContent, options?: CallOptions) {
    const call = { method: 'volumes', host } as const;
    return this.#call(call, options, () => this.#operations.volumes({ host, storage }, content));
  }

  downloadImage(order: ImageOrder, options?: CallOptions) {
    const call = { method: 'downloadImage', host: order.host } as const;
    return this.#call(call, options, () => this.#operations.download(order));
  }

  uploadIso(file: Parameters<Hypervisor['uploadIso']>[0], options?: CallOptions) {
    const call = { method: 'uploadIso', host: file.host } as const;
    return this.#call(call, options, () => this.#operations.upload(file));
  }

  deleteVolume(host: string, volumeId: string, options?: CallOptions) {
    const call = { method: 'deleteVolume', host } as const;
    return this.#call(call, options, () => this.#operations.deleteVolume(host, volumeId));
  }

  guestIsUp(vm: VmRef, options?: CallOptions) {
    return this.#onVm('guestIsUp', vm, { options, work: () => this.#operations.isGuestUp(vm) });
  }

  guestInterfaces(vm: VmRef, options?: CallOptions) {
    return this.#onVm('guestInterfaces', vm, {
      options,
      work: () => this.#operations.interfaces(vm),
    });
  }

  guestExec(vm: VmRef, command: GuestCommand, options?: CallOptions) {
    const work = () => {
      this.#operations.requireGuest(vm);
      return this.guestCommand(vm, command);
    };
    return this.#onVm('guestExec', vm, { options, work });
  }

  permissions(_path: string, options?: CallOptions) {
    return this.#call({ method: 'permissions' }, options, () => this.privileges);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return Promise.resolve();
  }

  #onVm<T>(
    method: HypervisorMethod,
    vm: VmRef,
    how: { readonly options: CallOptions | undefined; readonly work: () => T },
  ): Promise<T> {
    return this.#call({ method, vmId: vm.vmId, host: vm.host }, how.options, how.work);
  }

  async #call<T>(
    call: HypervisorCall,
    options: CallOptions | undefined,
    work: () => T,
  ): Promise<T> {
    // Like a real call: no effect before the next turn of the event loop.
    await Promise.resolve();
    if (options?.signal?.aborted === true || this.#isClosed) {
      throw new Cancelled(
        'CANCELLED',
        `${call.method}: the caller aborted the call or the hypervisor is closed`,
      );
    }
    this.calls.push(call);
    this.onCall?.(call);
    this.state.finishDueTasks(this.#clock.monotonic());
    const planned = this.#failures.get(call.method)?.shift();
    if (planned !== undefined) throw planned;
    const result = work();
    const lost = this.#responsesToDrop.get(call.method) ?? 0;
    if (lost === 0) return result;
    this.#responsesToDrop.set(call.method, lost - 1);
    throw new Unreachable('PVE_UNREACHABLE', `${call.method}: the response was dropped`, {
      facts: { requestSent: true },
    });
  }
}
