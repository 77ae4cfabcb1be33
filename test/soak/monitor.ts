// SPDX-License-Identifier: Apache-2.0
// Stands between a process and Proxmox and judges every call that changes something, from the simulator's truth
// and the durable records alone.
import { readMarker } from '../../src/model/marker.ts';
import type { Hypervisor, VmRef } from '../../src/ports/hypervisor.ts';
import { ownMarker } from './invariants.ts';
import type { Known } from './known.ts';

const ON_A_VM = [
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
const MAKING = ['createVm', 'cloneVm'];
const OTHER = ['downloadImage', 'uploadIso', 'deleteVolume'];
const CHANGING = [...ON_A_VM, ...MAKING, ...OTHER];

/** A process that is left hanging in the middle of a call that only looks. */
export interface Stall {
  callsLeft: number;
  readonly ms: number;
}

export interface Watched {
  /** Of the lease under which it believes to act. */
  token: number;
  stall: Stall | undefined;
}

export class Monitor {
  readonly #world: Known;
  readonly #process: Watched;
  /** The task each VM is known to be busy with. */
  readonly #tasks = new Map<number, string>();

  constructor(world: Known, process: Watched) {
    this.#world = world;
    this.#process = process;
  }

  wrap(hypervisor: Hypervisor): Hypervisor {
    return new Proxy(hypervisor, {
      get: (target, name, receiver) => {
        const member: unknown = Reflect.get(target, name, receiver);
        if (typeof member !== 'function') return member;
        if (name === 'volumeId') return member.bind(target) as unknown;
        return (...given: unknown[]) =>
          this.#call(String(name), given, () => member.apply(target, given) as unknown);
      },
    });
  }

  async #call(name: string, given: readonly unknown[], work: () => unknown): Promise<unknown> {
    const [first] = given;
    const isChanging = CHANGING.includes(name);
    if (!isChanging) await this.#stall();
    if (isChanging) this.#judgeLeadership(name);
    if (ON_A_VM.includes(name)) this.#judgeChange(name, first as VmRef);
    if (MAKING.includes(name)) await this.#judgeMaking(name, first as VmRef);
    const answer = await work();
    const upid = (answer as { readonly upid?: unknown } | undefined)?.upid;
    if (typeof upid === 'string' && isChanging && !OTHER.includes(name)) {
      this.#tasks.set((first as VmRef).vmId, upid);
    }
    return answer;
  }

  async #stall(): Promise<void> {
    const { stall } = this.#process;
    if (stall === undefined) return;
    stall.callsLeft -= 1;
    if (stall.callsLeft > 0) return;
    this.#process.stall = undefined;
    await this.#world.region.clock.sleep(stall.ms);
  }

  #judgeLeadership(name: string): void {
    if (this.#process.token === this.#world.token) return;
    this.#world.violated(`${name} by a process that no longer holds the lease`);
  }

  #judgeChange(name: string, { vmId }: VmRef): void {
    const { vms, runningTasks } = this.#world.region.sim.inspect();
    const upid = this.#tasks.get(vmId);
    if (runningTasks.some((task) => task.upid === upid)) {
      this.#world.violated(`${name} of VM ${vmId} while its task ${upid ?? ''} runs`);
    }
    const vm = vms.find(({ id }) => id === vmId);
    if (vm === undefined) return;
    const isStranger = this.#world.strangers.has(vmId) || ownMarker(vm) === undefined;
    if (isStranger) this.#world.violated(`${name} of VM ${vmId}, which is not ours`);
    else if (name === 'destroyVm') this.#judgeDestruction(vmId, vm.config['description']);
  }

  /** Marked, unless it is a double whose machine is elsewhere. */
  #judgeDestruction(vmId: number, description: string | undefined): void {
    const reading = readMarker(description);
    if (reading.kind !== 'marked') return;
    const { machine, deletingSinceSeconds } = reading.marker;
    if (deletingSinceSeconds === undefined && this.#world.readyOnce.has(machine)) {
      this.#world.violated(`VM ${vmId} is destroyed without having been marked`);
    }
  }

  async #judgeMaking(name: string, { vmId, host }: VmRef): Promise<void> {
    const machines = await this.#world.machines();
    const isKnown = machines.some(
      ({ phase, placement }) =>
        phase === 'creating' && placement?.vmId === vmId && placement.host === host,
    );
    if (!isKnown) this.#world.violated(`${name} of VM ${vmId} before its intent was durable`);
  }
}
