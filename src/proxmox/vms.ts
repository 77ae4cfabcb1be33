// SPDX-License-Identifier: Apache-2.0
import { Conflict, NotFound, PvescalerError } from '../ports/errors.ts';
import type {
  CallOptions,
  ChangeOptions,
  CloneVmOrder,
  CreateVmOrder,
  DescriptionOptions,
  TaskRef,
  VmConfig,
  VmRef,
  VmSpec,
  VmState,
} from '../ports/hypervisor.ts';
import type { ApiClient, ApiRequest } from './api-client.ts';
import type { NeededPrivilege } from './explain-refusal.ts';
import { rejectAsNotSent } from './retry.ts';
import { computeSpecChange } from './spec-change.ts';
import { parseStartedTask } from './upid.ts';
import type { VersionCheck } from './version.ts';
import {
  EMPTY_CD_DRIVE,
  findBootDrive,
  formatDiskSize,
  formatSeedDrive,
  type ParsedVmConfig,
  parseDriveBytes,
  parseVmConfig,
  SEED_DRIVE,
} from './vm-config.ts';

import type { VmHosts } from './vm-hosts.ts';
import { formatChangeParameters, formatCreateParameters, type OptionChange } from './vm-options.ts';
import { asNumber, asObject, asText, encodeSegment, type Parameters } from './wire-values.ts';

interface VmsOptions {
  readonly api: ApiClient;
  readonly vmHosts: VmHosts;
  readonly version: VersionCheck;
  /** Called with every configuration that is read. */
  readonly onConfigRead: (config: VmConfig) => void;
}

type VmRequest = Omit<ApiRequest, 'path' | 'host' | 'facts'>;

/** Operations on VMs, except those inside the guest. */
export class Vms {
  readonly #api: ApiClient;
  readonly #vmHosts: VmHosts;
  readonly #version: VersionCheck;
  readonly #onConfigRead: (config: VmConfig) => void;

  constructor(options: VmsOptions) {
    this.#api = options.api;
    this.#vmHosts = options.vmHosts;
    this.#version = options.version;
    this.#onConfigRead = options.onConfigRead;
  }

  async config(vm: VmRef, options: CallOptions): Promise<VmConfig> {
    return (await this.#read(vm, options)).config;
  }

  #read(vm: VmRef, options: CallOptions): Promise<ParsedVmConfig> {
    return this.#vmHosts.runOnHost(
      vm,
      async (host) => {
        const call = { method: 'GET', operation: 'read the configuration of', ...options } as const;
        const data = await this.#requestOn(vm, host, '/config', call);
        const stored = parseVmConfig({ vmId: vm.vmId, host }, data);
        this.#onConfigRead(stored.config);
        return stored;
      },
      options.signal,
    );
  }

  state(vm: VmRef, options: CallOptions): Promise<VmState> {
    return this.#vmHosts.runOnHost(
      vm,
      async (host) => {
        const call = { method: 'GET', operation: 'read the state of', ...options } as const;
        const data = asObject(await this.#requestOn(vm, host, '/status/current', call));
        return {
          vmId: vm.vmId,
          host,
          power: data['status'] === 'running' ? 'running' : 'stopped',
          lock: asText(data['lock']),
          uptimeSeconds: asNumber(data['uptime']) ?? 0,
        };
      },
      options.signal,
    );
  }

  async create(order: CreateVmOrder, options: CallOptions): Promise<TaskRef> {
    if (order.disk.importFrom !== undefined) {
      await this.#version.requireAtLeast(
        '8.4',
        'importing a disk image needs Proxmox VE 8.4',
        options,
      );
    }
    const data = await this.#api.requestData({
      method: 'POST',
      path: `/nodes/${encodeSegment(order.host)}/qemu`,
      operation: `create VM ${order.vmId} on ${order.host}`,
      form: formatCreateParameters(order),
      host: order.host,
      needs: [allocatePrivilege(order)],
      facts: { vmId: order.vmId },
      signal: options.signal,
    });
    this.#vmHosts.set(order);
    return parseStartedTask(data, `create VM ${order.vmId}`);
  }

  async clone(order: CloneVmOrder, options: CallOptions): Promise<TaskRef> {
    const operation = `clone VM ${order.source.vmId} to ${order.vmId}`;
    const cloneAt = async (host: string) => {
      const data = await this.#api.requestData({
        method: 'POST',
        path: `/nodes/${encodeSegment(host)}/qemu/${order.source.vmId}/clone`,
        operation,
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
        needs: [
          { privilege: 'VM.Clone', path: `/vms/${order.source.vmId}` },
          allocatePrivilege(order),
        ],
        facts: { vmId: order.vmId, sourceVmId: order.source.vmId },
        signal: options.signal,
      });
      return parseStartedTask(data, operation);
    };
    try {
      const task = await this.#vmHosts.runOnHost(order.source, cloneAt, options.signal);
      this.#vmHosts.set(order);
      return task;
    } catch (error) {
      throw isVmNotFound(error) ? templateNotFound(order, error) : error;
    }
  }

  async applySpec(vm: VmRef, spec: VmSpec, options: ChangeOptions): Promise<boolean> {
    const clone = await this.#readUnchanged(vm, options);
    // A separate change, because Proxmox does not remove drives of a protected VM.
    const change = clone.config.isProtected
      ? { remove: ['protection'] }
      : computeSpecChange(clone, spec);
    return this.#changeOptions(vm, change, options);
  }

  /** Reads the VM that the caller verified; rejects with VM_CHANGED if it is another one by now. */
  async #readUnchanged(vm: VmRef, { digest, signal }: ChangeOptions): Promise<ParsedVmConfig> {
    const read = await rejectAsNotSent(this.#read(vm, { signal }));
    if (digest !== read.config.digest) throw configChanged(vm);
    return read;
  }

  async attachSeed(vm: VmRef, volumeId: string, options: ChangeOptions): Promise<void> {
    await this.#changeOptions(vm, { set: { [SEED_DRIVE]: formatSeedDrive(volumeId) } }, options);
  }

  async ejectSeed(vm: VmRef, options: ChangeOptions): Promise<void> {
    await this.#changeOptions(vm, { set: { [SEED_DRIVE]: EMPTY_CD_DRIVE } }, options);
  }

  async setDescription(vm: VmRef, description: string, options: DescriptionOptions): Promise<void> {
    const { tags, removeProtection = false } = options;
    // Proxmox refuses an empty value.
    const remove = [
      ...(removeProtection ? ['protection'] : []),
      ...(tags?.length === 0 ? ['tags'] : []),
    ];
    const set = {
      description,
      ...(tags !== undefined && tags.length > 0 && { tags: tags.join(';') }),
    };
    await this.#changeOptions(vm, { set, remove }, options);
  }

  async removeProtection(vm: VmRef, options: ChangeOptions): Promise<void> {
    await this.#changeOptions(vm, { remove: ['protection'] }, options);
  }

  /** Resolves with false if there is nothing to change: Proxmox refuses an empty change. */
  async #changeOptions(
    vm: VmRef,
    change: OptionChange,
    { digest, signal }: ChangeOptions,
  ): Promise<boolean> {
    const form = formatChangeParameters(change);
    if (Object.values(form).every((value) => value === undefined)) return false;
    await this.#request(
      vm,
      {
        method: 'PUT',
        operation: 'configure',
        form: { ...form, digest },
        // Proxmox refuses a second attempt with the same digest, which would hide that the first succeeded.
        repeatable: false,
        signal,
      },
      '/config',
    );
    return true;
  }

  async growBootDisk(
    vm: VmRef,
    bytes: number,
    options: ChangeOptions,
  ): Promise<TaskRef | undefined> {
    const { options: stored } = await this.#readUnchanged(vm, options);
    const drive = findBootDrive(stored);
    if (drive === undefined) {
      throw new NotFound(
        'VOLUME_NOT_FOUND',
        `grow the boot disk of VM ${vm.vmId}: the VM has no disk`,
        {
          facts: { vmId: vm.vmId },
        },
      );
    }
    const size = parseDriveBytes(stored[drive] ?? '');
    if (size !== undefined && size >= bytes) return undefined;
    const { digest, signal } = options;
    const form = { disk: drive, size: formatDiskSize(bytes), digest };
    const call = { method: 'PUT', operation: 'grow the boot disk of', form, signal } as const;
    const data = await this.#request(vm, call, '/resize');
    return data === null
      ? undefined
      : parseStartedTask(data, `grow the boot disk of VM ${vm.vmId}`);
  }

  start(vm: VmRef, options: CallOptions): Promise<TaskRef> {
    return this.#changePower(vm, 'start', { form: {}, ...options });
  }

  shutdown(vm: VmRef, timeoutMs: number, options: CallOptions): Promise<TaskRef> {
    const form = { timeout: Math.ceil(timeoutMs / 1_000), forceStop: true };
    return this.#changePower(vm, 'shutdown', { form, ...options });
  }

  async stop(vm: VmRef, options: CallOptions): Promise<TaskRef> {
    // A running shutdown task locks the VM. Since 8.2 a stop can overrule it.
    const canOverrule = await this.#version.isAtLeast('8.2', options);
    const form = canOverrule ? { 'overrule-shutdown': true } : {};
    return this.#changePower(vm, 'stop', { form, ...options });
  }

  async destroy(vm: VmRef, options: CallOptions): Promise<TaskRef | undefined> {
    const query = { purge: true };
    const call = { method: 'DELETE', operation: 'destroy', query, ...options } as const;
    const destroyAt = (host: string) => this.#requestOn(vm, host, '', call);
    try {
      const data = await this.#vmHosts.runOnNamedHost(vm, destroyAt, options.signal);
      return parseStartedTask(data, `destroy VM ${vm.vmId}`);
    } catch (error) {
      if (isVmNotFound(error)) return undefined;
      throw error;
    }
  }

  async convertToTemplate(vm: VmRef, options: CallOptions): Promise<TaskRef> {
    const call = {
      method: 'POST',
      operation: 'convert to a template',
      form: {},
      ...options,
    } as const;
    const data = await this.#request(vm, call, '/template');
    return parseStartedTask(data, `convert VM ${vm.vmId} to a template`);
  }

  async #changePower(
    vm: VmRef,
    action: 'start' | 'shutdown' | 'stop',
    call: { readonly form: Parameters } & CallOptions,
  ): Promise<TaskRef> {
    const order = { method: 'POST', operation: action, ...call } as const;
    const data = await this.#request(vm, order, `/status/${action}`);
    return parseStartedTask(data, `${action} VM ${vm.vmId}`);
  }

  #request(vm: VmRef, call: VmRequest, subpath: string): Promise<unknown> {
    return this.#vmHosts.runOnHost(
      vm,
      (host) => this.#requestOn(vm, host, subpath, call),
      call.signal,
    );
  }

  // oxlint-disable-next-line max-params -- VM, host, path and request; an options object adds nothing
  #requestOn(vm: VmRef, host: string, subpath: string, call: VmRequest): Promise<unknown> {
    return this.#api.requestData({
      ...call,
      path: `/nodes/${encodeSegment(host)}/qemu/${vm.vmId}${subpath}`,
      operation: `${call.operation} VM ${vm.vmId} on ${host}`,
      host,
      facts: { vmId: vm.vmId },
    });
  }
}

function isVmNotFound(error: unknown): error is PvescalerError {
  return error instanceof PvescalerError && error.code === 'VM_NOT_FOUND';
}

function configChanged({ vmId }: VmRef): Conflict {
  return new Conflict(
    'VM_CHANGED',
    `the configuration of VM ${vmId} was changed by another client since it was read`,
    {
      facts: { vmId, requestSent: false },
    },
  );
}

/** A VM that is created in a resource pool needs the privilege on that pool or on its own path. */
function allocatePrivilege({
  vmId,
  resourcePool,
}: Pick<CreateVmOrder, 'vmId' | 'resourcePool'>): NeededPrivilege {
  const path = resourcePool === undefined ? `/vms/${vmId}` : `/pool/${resourcePool}`;
  return { privilege: 'VM.Allocate', path };
}

function templateNotFound(order: CloneVmOrder, cause: PvescalerError): NotFound {
  return new NotFound(
    'TEMPLATE_NOT_FOUND',
    `clone VM ${order.source.vmId}: it does not exist on any host of the region`,
    {
      cause,
      facts: { vmId: order.vmId, sourceVmId: order.source.vmId },
    },
  );
}
