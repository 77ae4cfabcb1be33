// SPDX-License-Identifier: Apache-2.0
// Intercepts the calls from a process to Proxmox and checks every write against the simulator's state and the
// durable records.
import { readMarker } from '../../src/model/marker.ts';
import type { Hypervisor, VmRef } from '../../src/ports/hypervisor.ts';
import { readOwnMarker } from './invariants.ts';
import type { SoakState } from './soak-state.ts';

const VM_CALLS = [
  'applySpec',
  'attachSeed',
  'ejectSeed',
  'setDescription',
  'removeProtection',
  'growBootDisk',
  'startVm',
  'shutdownVm',
  'stopVm',
  'destroyVm',
];
const CREATE_CALLS = ['createVm', 'cloneVm'];
const STORAGE_CALLS = ['downloadImage', 'uploadIso', 'deleteVolume'];
const WRITE_CALLS = [...VM_CALLS, ...CREATE_CALLS, ...STORAGE_CALLS];

/** Pauses a process in a read call, counted from now. */
export interface Stall {
  callsLeft: number;
  readonly ms: number;
}

export interface MonitoredProcess {
  /** Token of the last lease that this process acquired. */
  token: number;
  stall: Stall | undefined;
}

export class CallMonitor {
  readonly #state: SoakState;
  readonly #process: MonitoredProcess;
  /** Last task of each VM, by VM id. */
  readonly #tasks = new Map<number, string>();

  constructor(state: SoakState, process: MonitoredProcess) {
    this.#state = state;
    this.#process = process;
  }

  wrap(hypervisor: Hypervisor): Hypervisor {
    return new Proxy(hypervisor, {
      get: (target, name, receiver) => {
        const member: unknown = Reflect.get(target, name, receiver);
        if (typeof member !== 'function') return member;
        if (name === 'volumeId') return member.bind(target) as unknown;
        return (...args: unknown[]) =>
          this.#call(String(name), args, () => member.apply(target, args) as unknown);
      },
    });
  }

  async #call(name: string, args: readonly unknown[], work: () => unknown): Promise<unknown> {
    const [first] = args;
    const isWrite = WRITE_CALLS.includes(name);
    if (!isWrite) await this.#stallIfDue();
    if (isWrite) this.#checkLease(name);
    if (VM_CALLS.includes(name)) this.#checkVmChange(name, first as VmRef);
    if (CREATE_CALLS.includes(name)) await this.#checkCreate(name, first as VmRef);
    const answer = await work();
    const upid = (answer as { readonly upid?: unknown } | undefined)?.upid;
    if (typeof upid === 'string' && isWrite && !STORAGE_CALLS.includes(name)) {
      this.#tasks.set((first as VmRef).vmId, upid);
    }
    return answer;
  }

  async #stallIfDue(): Promise<void> {
    const { stall } = this.#process;
    if (stall === undefined) return;
    stall.callsLeft -= 1;
    if (stall.callsLeft > 0) return;
    this.#process.stall = undefined;
    await this.#state.region.clock.sleep(stall.ms);
  }

  #checkLease(name: string): void {
    if (this.#process.token === this.#state.leaseToken) return;
    this.#state.reportViolation(`${name} was called by a process that no longer holds the lease`);
  }

  #checkVmChange(name: string, { vmId }: VmRef): void {
    const { vms, runningTasks } = this.#state.region.sim.inspect();
    const upid = this.#tasks.get(vmId);
    if (runningTasks.some((task) => task.upid === upid)) {
      this.#state.reportViolation(
        `${name} was called for VM ${vmId} while its task ${upid ?? ''} is running`,
      );
    }
    const vm = vms.find(({ id }) => id === vmId);
    if (vm === undefined) return;
    const isUnmanaged = this.#state.unmanagedVms.has(vmId) || readOwnMarker(vm) === undefined;
    if (isUnmanaged) this.#state.reportViolation(`${name} was called for unmanaged VM ${vmId}`);
    else if (name === 'destroyVm') this.#checkDestroy(vmId, vm.config['description']);
  }

  /** A machine that was ready is marked as being deleted before its VM is destroyed. A duplicate VM needs no mark. */
  #checkDestroy(vmId: number, description: string | undefined): void {
    const reading = readMarker(description);
    if (reading.kind !== 'marked') return;
    const { machine, deletingSinceSeconds } = reading.marker;
    if (deletingSinceSeconds === undefined && this.#state.everReady.has(machine)) {
      this.#state.reportViolation(`VM ${vmId} was destroyed without a deletion mark`);
    }
  }

  async #checkCreate(name: string, { vmId, host }: VmRef): Promise<void> {
    const machines = await this.#state.machines();
    const isKnown = machines.some(
      ({ phase, placement }) =>
        phase === 'creating' && placement?.vmId === vmId && placement.host === host,
    );
    if (!isKnown)
      this.#state.reportViolation(
        `${name} was called for VM ${vmId} before its record was durable`,
      );
  }
}
