// SPDX-License-Identifier: Apache-2.0
import { Conflict, NotFound, PvescalerError } from '../ports/errors.ts';
import type { VmRef } from '../ports/hypervisor.ts';
import type { ApiClient } from './api-client.ts';
import { rejectAsNotSent } from './retry.ts';
import { asNumber, asObjects, asText } from './wire-values.ts';

/**
 * Tracks which host has which VM. Users and HA move VMs, and a host without the VM only reports a missing file. So the last
 * known host takes precedence over the host in the caller's VmRef, and a VM that is not on its host is searched in the
 * whole region before it counts as not found.
 */
export class VmHosts {
  readonly #api: ApiClient;
  readonly #hosts = new Map<number, string>();

  constructor(api: ApiClient) {
    this.#api = api;
  }

  get(vm: VmRef): string {
    return this.#hosts.get(vm.vmId) ?? vm.host;
  }

  set(vm: VmRef): void {
    this.#hosts.set(vm.vmId, vm.host);
  }

  replaceAll(vms: readonly VmRef[]): void {
    this.#hosts.clear();
    for (const vm of vms) this.set(vm);
  }

  delete(vmId: number): void {
    this.#hosts.delete(vmId);
  }

  /**
   * Runs `work` on the VM's host. If the VM is not there, finds its new host and runs `work` once more. Only for requests
   * that Proxmox refuses without effect if the VM is missing, which holds for all that read its configuration first.
   */
  async runOnHost<T>(
    vm: VmRef,
    work: (host: string) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    try {
      return await work(this.get(vm));
    } catch (error) {
      const host = await this.#findNewHost(vm, error, signal);
      return await work(host).catch((secondError: unknown) => {
        throw isVmNotOnHost(secondError) ? vmMoved(vm.vmId, secondError) : secondError;
      });
    }
  }

  /**
   * Runs `work` only on the host in `vm`, for irreversible operations. A VM with the same id on another host may be a
   * different VM; the caller must verify it there first.
   */
  async runOnNamedHost<T>(
    vm: VmRef,
    work: (host: string) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    try {
      return await work(vm.host);
    } catch (error) {
      await this.#findNewHost(vm, error, signal);
      throw vmMoved(vm.vmId, error);
    }
  }

  /** Returns the new host of a VM that is not on its host. Rethrows every other error. */
  async #findNewHost(vm: VmRef, error: unknown, signal: AbortSignal | undefined): Promise<string> {
    if (!isVmNotOnHost(error)) throw error;
    const host = await rejectAsNotSent(this.#findHost(vm.vmId, signal));
    if (host === undefined) throw vmNotFound(vm.vmId, error);
    this.set({ vmId: vm.vmId, host });
    return host;
  }

  async #findHost(vmId: number, signal: AbortSignal | undefined): Promise<string | undefined> {
    const data = await this.#api.requestData({
      method: 'GET',
      path: '/cluster/resources',
      query: { type: 'vm' },
      operation: `find the host of VM ${vmId}`,
      signal,
    });
    const found = asObjects(data).find(
      (entry) => asNumber(entry['vmid']) === vmId && entry['type'] === 'qemu',
    );
    if (found === undefined) this.delete(vmId);
    return asText(found?.['node']);
  }
}

function isVmNotOnHost(error: unknown): error is PvescalerError {
  return (
    error instanceof PvescalerError &&
    (error.code === 'VM_NOT_FOUND' || error.code === 'HOST_NOT_FOUND')
  );
}

function vmNotFound(vmId: number, cause: PvescalerError): NotFound {
  return new NotFound('VM_NOT_FOUND', `VM ${vmId} does not exist on any host of the region`, {
    cause,
    facts: { vmId },
  });
}

/** The region lists the VM, but the queried host does not have it: a migration is in progress or has ended. */
function vmMoved(vmId: number, cause: unknown): Conflict {
  return new Conflict(
    'VM_CHANGED',
    `VM ${vmId} is on another host than expected: it was migrated, or a migration is in progress`,
    {
      cause,
      facts: { vmId },
    },
  );
}
