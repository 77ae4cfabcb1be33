// SPDX-License-Identifier: Apache-2.0
import { Conflict, NotFound, PvescalerError } from '../ports/errors.ts';
import type { VmRef } from '../ports/hypervisor.ts';
import { numberOf, recordsOf, textOf } from './json.ts';
import { beforeSending } from './not-sent.ts';
import type { Api } from './request.ts';

/**
 * Which host has which VM. People and HA move VMs; a host that is asked for one it does not have says only
 * that there is no such file. So what was learnt last counts more than what the caller last knew, and a VM
 * not found where it should be is looked for in the whole region before it is called gone.
 */
export class Whereabouts {
  readonly #api: Api;
  readonly #hosts = new Map<number, string>();

  constructor(api: Api) {
    this.#api = api;
  }

  hostOf(vm: VmRef): string {
    return this.#hosts.get(vm.vmId) ?? vm.host;
  }

  note(vm: VmRef): void {
    this.#hosts.set(vm.vmId, vm.host);
  }

  noteAll(vms: readonly VmRef[]): void {
    this.#hosts.clear();
    for (const vm of vms) this.note(vm);
  }

  forget(vmId: number): void {
    this.#hosts.delete(vmId);
  }

  /**
   * Runs `work` at the VM's host; once more, elsewhere, when the VM is not there. Only for calls that Proxmox
   * refuses before it does anything, which is every call that looks at the VM's configuration first.
   */
  async at<T>(
    vm: VmRef,
    work: (host: string) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    try {
      return await work(this.hostOf(vm));
    } catch (error) {
      const host = await this.#newHost(vm, error, signal);
      return await work(host).catch((again: unknown) => {
        throw isElsewhere(again) ? moving(vm.vmId, again) : again;
      });
    }
  }

  /**
   * Runs `work` at the host that the caller has looked at and nowhere else: for what cannot be undone. A VM of that id
   * on another host may be another one; whoever wants it gone looks at it there first.
   */
  async onlyAt<T>(
    vm: VmRef,
    work: (host: string) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    try {
      return await work(vm.host);
    } catch (error) {
      await this.#newHost(vm, error, signal);
      throw moving(vm.vmId, error);
    }
  }

  /** Where a VM is that was not found where it should be. Any other trouble stays what it is. */
  async #newHost(vm: VmRef, error: unknown, signal: AbortSignal | undefined): Promise<string> {
    if (!isElsewhere(error)) throw error;
    const host = await beforeSending(this.#find(vm.vmId, signal));
    if (host === undefined) throw gone(vm.vmId, error);
    this.note({ vmId: vm.vmId, host });
    return host;
  }

  async #find(vmId: number, signal: AbortSignal | undefined): Promise<string | undefined> {
    const data = await this.#api.data({
      method: 'GET',
      path: '/cluster/resources',
      query: { type: 'vm' },
      doing: `look for VM ${vmId}`,
      signal,
    });
    const found = recordsOf(data).find(
      (entry) => numberOf(entry['vmid']) === vmId && entry['type'] === 'qemu',
    );
    if (found === undefined) this.forget(vmId);
    return textOf(found?.['node']);
  }
}

function isElsewhere(error: unknown): error is PvescalerError {
  return (
    error instanceof PvescalerError &&
    (error.code === 'VM_NOT_FOUND' || error.code === 'HOST_NOT_FOUND')
  );
}

function gone(vmId: number, cause: PvescalerError): NotFound {
  return new NotFound('VM_NOT_FOUND', `no host has VM ${vmId}`, { cause, facts: { vmId } });
}

/** The region lists it, the host that was asked does not have it: it is on its way between two, or has arrived. */
function moving(vmId: number, cause: unknown): Conflict {
  return new Conflict('VM_CHANGED', `VM ${vmId} is being moved, or was`, {
    cause,
    facts: { vmId },
  });
}
