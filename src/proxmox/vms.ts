// SPDX-License-Identifier: Apache-2.0
import { Conflict, NotFound, PvescalerError } from '../ports/errors.ts';
import type {
  CallOptions,
  ChangeOptions,
  CloneVmOrder,
  CreateVmOrder,
  TaskRef,
  VmConfig,
  VmRef,
  VmSpec,
  VmState,
} from '../ports/hypervisor.ts';
import { bootDriveOf, diskBytesOf, EMPTY_CD_DRIVE, SEED_DRIVE, seedDrive } from './drives.ts';
import { type Parameters, segment } from './form.ts';
import { numberOf, recordOf, textOf } from './json.ts';
import { beforeSending } from './not-sent.ts';
import { formatDiskSize } from './property-string.ts';
import type { Api, ApiCall } from './request.ts';
import { specChange } from './spec-change.ts';
import { startedTask } from './started-task.ts';
import type { VersionGate } from './version.ts';
import { type StoredConfig, storedConfigOf } from './vm-config.ts';
import { changeParameters, createParameters, type OptionChange } from './vm-options.ts';
import type { Whereabouts } from './whereabouts.ts';

interface Collaborators {
  readonly api: Api;
  readonly whereabouts: Whereabouts;
  readonly version: VersionGate;
  /** Sees every configuration that is read. */
  readonly noteConfig: (config: VmConfig) => void;
}

type VmCall = Omit<ApiCall, 'path' | 'host' | 'doing' | 'facts'> & { readonly doing: string };

/** Everything done to one VM from outside its guest. */
export class Vms {
  readonly #api: Api;
  readonly #whereabouts: Whereabouts;
  readonly #version: VersionGate;
  readonly #noteConfig: (config: VmConfig) => void;

  constructor(collaborators: Collaborators) {
    this.#api = collaborators.api;
    this.#whereabouts = collaborators.whereabouts;
    this.#version = collaborators.version;
    this.#noteConfig = collaborators.noteConfig;
  }

  async config(vm: VmRef, options: CallOptions): Promise<VmConfig> {
    return (await this.#read(vm, options)).config;
  }

  #read(vm: VmRef, options: CallOptions): Promise<StoredConfig> {
    return this.#whereabouts.at(
      vm,
      async (host) => {
        const call = { method: 'GET', doing: 'read the configuration of', ...options } as const;
        const data = await this.#on(vm, host, '/config', call);
        const stored = storedConfigOf({ vmId: vm.vmId, host }, data);
        this.#noteConfig(stored.config);
        return stored;
      },
      options.signal,
    );
  }

  state(vm: VmRef, options: CallOptions): Promise<VmState> {
    return this.#whereabouts.at(
      vm,
      async (host) => {
        const call = { method: 'GET', doing: 'read the state of', ...options } as const;
        const data = recordOf(await this.#on(vm, host, '/status/current', call));
        return {
          vmId: vm.vmId,
          host,
          power: data['status'] === 'running' ? 'running' : 'stopped',
          lock: textOf(data['lock']),
          uptimeSeconds: numberOf(data['uptime']) ?? 0,
        };
      },
      options.signal,
    );
  }

  async create(order: CreateVmOrder, options: CallOptions): Promise<TaskRef> {
    if (order.disk.importFrom !== undefined) {
      await this.#version.require('8.4', 'importing a disk image needs 8.4', options);
    }
    const data = await this.#api.data({
      method: 'POST',
      path: `/nodes/${segment(order.host)}/qemu`,
      doing: `create VM ${order.vmId} on ${order.host}`,
      form: createParameters(order),
      host: order.host,
      facts: { vmId: order.vmId },
      signal: options.signal,
    });
    this.#whereabouts.note(order);
    return startedTask(data, `create VM ${order.vmId}`);
  }

  async clone(order: CloneVmOrder, options: CallOptions): Promise<TaskRef> {
    const doing = `clone VM ${order.source.vmId} to ${order.vmId}`;
    const cloneAt = async (host: string) => {
      const data = await this.#api.data({
        method: 'POST',
        path: `/nodes/${segment(host)}/qemu/${order.source.vmId}/clone`,
        doing,
        form: {
          newid: order.vmId,
          name: order.name,
          description: order.description,
          full: !order.linked,
          storage: order.linked ? undefined : order.storage,
          target: host === order.host ? undefined : order.host,
          pool: order.resourcePool,
        },
        host,
        facts: { vmId: order.vmId, sourceVmId: order.source.vmId },
        signal: options.signal,
      });
      return startedTask(data, doing);
    };
    try {
      const task = await this.#whereabouts.at(order.source, cloneAt, options.signal);
      this.#whereabouts.note(order);
      return task;
    } catch (error) {
      throw isGone(error) ? templateGone(order, error) : error;
    }
  }

  async applySpec(vm: VmRef, spec: VmSpec, options: ChangeOptions): Promise<boolean> {
    const { signal, digest } = options;
    const read = await beforeSending(this.#read(vm, { signal }));
    if (digest !== undefined && digest !== read.config.digest) throw changedMeanwhile(vm);
    const { isProtected } = read.config;
    const clone = isProtected ? await this.#withoutProtection(vm, read, { signal }) : read;
    const change = specChange(clone, spec);
    const isWritten = await this.#configure(
      vm,
      { ...change, digest: clone.config.digest },
      { signal },
    );
    return isWritten || isProtected;
  }

  /** In a change of its own: Proxmox removes no drive from a VM that is protected. */
  async #withoutProtection(
    vm: VmRef,
    { config: { digest } }: StoredConfig,
    options: CallOptions,
  ): Promise<StoredConfig> {
    await this.removeProtection(vm, { digest, ...options });
    return this.#read(vm, options);
  }

  async attachSeed(vm: VmRef, volumeId: string, options: ChangeOptions): Promise<void> {
    await this.#changeOptions(vm, { set: { [SEED_DRIVE]: seedDrive(volumeId) } }, options);
  }

  async ejectSeed(vm: VmRef, options: ChangeOptions): Promise<void> {
    await this.#changeOptions(vm, { set: { [SEED_DRIVE]: EMPTY_CD_DRIVE } }, options);
  }

  async setDescription(
    vm: VmRef,
    description: string,
    options: ChangeOptions & { readonly removeProtection?: boolean },
  ): Promise<void> {
    const remove = options.removeProtection === true ? ['protection'] : [];
    await this.#changeOptions(vm, { set: { description }, remove }, options);
  }

  async removeProtection(vm: VmRef, options: ChangeOptions): Promise<void> {
    await this.#changeOptions(vm, { remove: ['protection'] }, options);
  }

  #changeOptions(
    vm: VmRef,
    change: OptionChange,
    { digest, signal }: ChangeOptions,
  ): Promise<boolean> {
    return this.#configure(vm, { ...change, digest }, { signal });
  }

  /** Resolves with whether there was anything to change: Proxmox refuses a change of nothing. */
  async #configure(vm: VmRef, change: OptionChange, options: CallOptions): Promise<boolean> {
    const form = changeParameters(change);
    if (Object.entries(form).every(([name, v]) => name === 'digest' || v === undefined)) {
      return false;
    }
    await this.#changing(
      vm,
      {
        method: 'PUT',
        doing: 'configure',
        form,
        // With a digest the second of two equal changes is refused, and would hide that the first was made.
        repeatable: change.digest === undefined,
        ...options,
      },
      '/config',
    );
    return true;
  }

  async growBootDisk(vm: VmRef, bytes: number, options: CallOptions): Promise<TaskRef | undefined> {
    const { options: stored } = await beforeSending(this.#read(vm, options));
    const drive = bootDriveOf(stored);
    if (drive === undefined) {
      throw new NotFound('VOLUME_NOT_FOUND', `VM ${vm.vmId} has no disk`, {
        facts: { vmId: vm.vmId },
      });
    }
    const size = diskBytesOf(stored[drive] ?? '');
    if (size !== undefined && size >= bytes) return undefined;
    const form = { disk: drive, size: formatDiskSize(bytes) };
    const call = { method: 'PUT', doing: 'grow a disk of', form, ...options } as const;
    const data = await this.#changing(vm, call, '/resize');
    return data === null ? undefined : startedTask(data, `grow a disk of VM ${vm.vmId}`);
  }

  start(vm: VmRef, options: CallOptions): Promise<TaskRef> {
    return this.#power(vm, 'start', { form: {}, ...options });
  }

  shutdown(vm: VmRef, timeoutMs: number, options: CallOptions): Promise<TaskRef> {
    const form = { timeout: Math.ceil(timeoutMs / 1_000), forceStop: true };
    return this.#power(vm, 'shutdown', { form, ...options });
  }

  async stop(vm: VmRef, options: CallOptions): Promise<TaskRef> {
    // A shutdown that waits for its guest holds the VM; before 8.2 nothing overrules it.
    const overrules = await this.#version.isAtLeast('8.2', options);
    const form = overrules ? { 'overrule-shutdown': true } : {};
    return this.#power(vm, 'stop', { form, ...options });
  }

  async destroy(vm: VmRef, options: CallOptions): Promise<TaskRef | undefined> {
    const query = { purge: true };
    const call = { method: 'DELETE', doing: 'destroy', query, ...options } as const;
    const destroyAt = (host: string) => this.#on(vm, host, '', call);
    try {
      const data = await this.#whereabouts.onlyAt(vm, destroyAt, options.signal);
      return startedTask(data, `destroy VM ${vm.vmId}`);
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  async #power(
    vm: VmRef,
    action: 'start' | 'shutdown' | 'stop',
    call: { readonly form: Parameters } & CallOptions,
  ): Promise<TaskRef> {
    const order = { method: 'POST', doing: action, ...call } as const;
    const data = await this.#changing(vm, order, `/status/${action}`);
    return startedTask(data, `${action} VM ${vm.vmId}`);
  }

  #changing(vm: VmRef, call: VmCall, below: string): Promise<unknown> {
    return this.#whereabouts.at(vm, (host) => this.#on(vm, host, below, call), call.signal);
  }

  // oxlint-disable-next-line max-params -- who, where, what on it, and how: an object of them says no more
  #on(vm: VmRef, host: string, below: string, call: VmCall): Promise<unknown> {
    return this.#api.data({
      ...call,
      path: `/nodes/${segment(host)}/qemu/${vm.vmId}${below}`,
      doing: `${call.doing} VM ${vm.vmId} on ${host}`,
      host,
      facts: { vmId: vm.vmId },
    });
  }
}

function isGone(error: unknown): error is PvescalerError {
  return error instanceof PvescalerError && error.code === 'VM_NOT_FOUND';
}

function changedMeanwhile({ vmId }: VmRef): Conflict {
  return new Conflict(
    'VM_CHANGED',
    `the configuration of VM ${vmId} has changed since it was read`,
    {
      facts: { vmId, requestSent: false },
    },
  );
}

function templateGone(order: CloneVmOrder, cause: PvescalerError): NotFound {
  return new NotFound('TEMPLATE_NOT_FOUND', `no host has VM ${order.source.vmId} to clone`, {
    cause,
    facts: { vmId: order.vmId, sourceVmId: order.source.vmId },
  });
}
