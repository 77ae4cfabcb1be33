// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { PvescalerError } from '../ports/errors.ts';
import type { CallOptions, VmRef, VmSummary } from '../ports/hypervisor.ts';
import { segment } from './form.ts';
import type { Api } from './request.ts';
import { vmConfigOf } from './vm-config.ts';

interface Size {
  readonly host: string;
  readonly cpus: number;
  readonly memoryBytes: number;
}

/** A whole host can be unknown to the overview at once; its VMs are then learnt over several views. */
const MOST_READS_PER_HOST = 25;
/** A host that answers slowly must not make every view slow. */
const READ_TIMEOUT_MS = 5_000;
const REST_MS = 60_000;

interface Collaborators {
  readonly api: Api;
  readonly clock: Clock;
}

/**
 * What VMs take of their host while the overview does not say. It learns a new VM's size only after ten
 * seconds, time enough to place a second one on the same memory. So the configuration of those, and only of
 * those, is read: once each, until the overview knows them.
 */
export class Sizes {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #known = new Map<number, Size>();
  /** When a host that did not answer is asked again. */
  readonly #askAgainAt = new Map<string, number>();

  constructor(collaborators: Collaborators) {
    this.#api = collaborators.api;
    this.#clock = collaborators.clock;
  }

  async fill(
    vms: readonly VmSummary[],
    online: ReadonlySet<string>,
    options: CallOptions,
  ): Promise<readonly VmSummary[]> {
    const unsized = vms.filter((vm) => vm.cpus === undefined || vm.memoryBytes === undefined);
    this.#forgetAllBut(unsized);
    const unread = unsized.filter(
      (vm) => online.has(vm.host) && !isBeingMade(vm.lock) && !this.#known.has(vm.vmId),
    );
    const byHost = Map.groupBy(unread, (vm) => vm.host);
    await Promise.all([...byHost].map(([host, some]) => this.#learnOn(host, some, options)));
    return vms.map((vm) => {
      const size = this.#known.get(vm.vmId);
      return size === undefined ? vm : { ...vm, cpus: size.cpus, memoryBytes: size.memoryBytes };
    });
  }

  /** One after the other, and no further once the host does not answer. */
  async #learnOn(host: string, vms: readonly VmRef[], options: CallOptions): Promise<void> {
    if ((this.#askAgainAt.get(host) ?? 0) > this.#clock.monotonic()) return;
    for (const vm of vms.slice(0, MOST_READS_PER_HOST)) {
      try {
        await this.#learn(vm, options);
      } catch (error) {
        // A VM that is gone meanwhile, or not for us to see, does not spoil the view.
        if (!isTrouble(error)) continue;
        this.#askAgainAt.set(host, this.#clock.monotonic() + REST_MS);
        return;
      }
    }
  }

  async #learn(vm: VmRef, options: CallOptions): Promise<void> {
    const data = await this.#api.data({
      method: 'GET',
      path: `/nodes/${segment(vm.host)}/qemu/${vm.vmId}/config`,
      doing: `read the size of VM ${vm.vmId} on ${vm.host}`,
      host: vm.host,
      repeatable: false,
      timeoutMs: READ_TIMEOUT_MS,
      ...options,
    });
    const { lock, cpus, memoryBytes } = vmConfigOf(vm, data);
    if (!isBeingMade(lock)) this.#known.set(vm.vmId, { host: vm.host, cpus, memoryBytes });
  }

  #forgetAllBut(vms: readonly VmSummary[]): void {
    const hosts = new Map(vms.map((vm) => [vm.vmId, vm.host]));
    for (const [vmId, size] of this.#known) {
      if (hosts.get(vmId) !== size.host) this.#known.delete(vmId);
    }
  }
}

/** Its configuration is empty until the task ends: what it lacks is not what it will be. */
function isBeingMade(lock: string | undefined): boolean {
  return lock === 'create' || lock === 'clone';
}

function isTrouble(error: unknown): boolean {
  return (
    error instanceof PvescalerError &&
    (error.class === 'Unreachable' || error.class === 'TimedOut' || error.class === 'Cancelled')
  );
}
