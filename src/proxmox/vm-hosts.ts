// SPDX-License-Identifier: Apache-2.0
import { Conflict, NotFound, PvescalerError } from '../ports/errors.ts';
import type { VmRef } from '../ports/hypervisor.ts';
import type { ApiClient } from './api-client.ts';
import { asNumber, asObjects, asText } from './json.ts';
import { rejectAsNotSent } from './not-sent.ts';

/**
 * Which host has which VM. People and HA move VMs; a host that is asked for one it does not have says only
 * that there is no such file. So what was learnt last counts more than what the caller last knew, and a VM
 * not found where it should be is looked for in the whole region before it is called gone.
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
   * Runs `work` at the VM's host; once more, elsewhere, when the VM is not there. Only for calls that Proxmox
   * refuses before it does anything, which is every call that looks at the VM's configuration first.
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
      return await work(host).catch((again: unknown) => {
        throw isVmNotOnHost(again) ? vmMoved(vm.vmId, again) : again;
      });
    }
  }

  /**
   * Runs `work` at the host that the caller has looked at and nowhere else: for what cannot be undone. A VM of that id
   * on another host may be another one; whoever wants it gone looks at it there first.
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

  /** Where a VM is that was not found where it should be. Any other trouble stays what it is. */
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
      operation: `look for VM ${vmId}`,
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
  return new NotFound('VM_NOT_FOUND', `no host has VM ${vmId}`, { cause, facts: { vmId } });
}

/** The region lists it, the host that was asked does not have it: it is on its way between two, or has arrived. */
function vmMoved(vmId: number, cause: unknown): Conflict {
  return new Conflict('VM_CHANGED', `VM ${vmId} is being moved, or was`, {
    cause,
    facts: { vmId },
  });
}
