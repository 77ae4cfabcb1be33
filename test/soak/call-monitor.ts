// SPDX-License-Identifier: Apache-2.0
// Intercepts the calls from a process to Proxmox and Kubernetes, and checks every write against the simulators' state
// and the durable records.
import {
  MUTATING_CLUSTER_CALLS,
  MUTATING_HYPERVISOR_CALLS,
} from '../../src/fleet/testing/crashing-process.ts';
import type { Machine } from '../../src/model/machine.ts';
import type { Cluster, NodeRef } from '../../src/ports/cluster.ts';
import { SimulatedCrash } from '../../src/ports/fakes/memory-store.ts';
import type { Hypervisor, VmRef } from '../../src/ports/hypervisor.ts';
import type { ConnectionObserver } from './api-connection.ts';
import type { Installation, SoakProcess } from './installation.ts';
import { listOwnVms, readOwnMarker, type Vm } from './invariants.ts';
import { isUnmanagedNode, smbiosUuidOf } from './kubernetes.ts';
import type { SoakState } from './soak-state.ts';

const CREATE_CALLS = ['createVm', 'cloneVm'];
const STORAGE_CALLS = ['downloadImage', 'uploadIso', 'deleteVolume'];
const VM_CALLS = MUTATING_HYPERVISOR_CALLS.filter(
  (name) => !CREATE_CALLS.includes(name) && !STORAGE_CALLS.includes(name),
) as readonly string[];
const NODE_CALLS = ['changeNode', 'declareNode', 'deleteNode'];
const WRITE_CALLS: readonly string[] = [...MUTATING_HYPERVISOR_CALLS, ...MUTATING_CLUSTER_CALLS];
const OVER_PHASES = ['deleting', 'failed', 'gone'];

export type MonitoredProcess = Pick<SoakProcess, 'stall' | 'isKilled' | 'leaseUntil'>;

interface Monitored {
  readonly state: SoakState;
  readonly installation: Installation;
  readonly process: MonitoredProcess;
}

type Check = (name: string, args: readonly unknown[]) => Promise<void>;

export class CallMonitor {
  readonly #state: SoakState;
  readonly #installation: Installation;
  readonly #process: MonitoredProcess;
  /** Last task of each VM, by region and VM id. */
  readonly #tasks = new Map<string, string>();

  constructor({ state, installation, process }: Monitored) {
    this.#state = state;
    this.#installation = installation;
    this.#process = process;
  }

  /** A new term knows of a task only by what is recorded. */
  forgetTasks(): void {
    this.#tasks.clear();
  }

  wrapHypervisor(region: string, hypervisor: Hypervisor): Hypervisor {
    return this.#wrap(hypervisor, {
      before: async (name, [first, second]) => {
        if (VM_CALLS.includes(name)) this.#checkVmChange(name, region, first as VmRef);
        if (CREATE_CALLS.includes(name)) await this.#checkCreate(name, region, first as VmRef);
        if (name === 'deleteVolume') this.#checkVolume(String(second));
      },
      after: (name, [first], answer) => {
        const upid = (answer as { readonly upid?: unknown } | undefined)?.upid;
        const isOfVm = WRITE_CALLS.includes(name) && !STORAGE_CALLS.includes(name);
        if (typeof upid === 'string' && isOfVm)
          this.#tasks.set(`${region}/${(first as VmRef).vmId}`, upid);
      },
    });
  }

  wrapCluster(cluster: Cluster): Cluster {
    return this.#wrap(cluster, {
      before: (name, [first]) => {
        if (NODE_CALLS.includes(name)) this.#checkNodeChange(name, first as NodeRef);
        return Promise.resolve();
      },
      after: () => undefined,
    });
  }

  /** Checks the requests of a process to the API server that has the records. */
  get connectionObserver(): Omit<ConnectionObserver, 'onWrite'> {
    return {
      beforeWrite: () => this.#stallIfDue(),
      afterLateWrite: () => this.#installation.recordDeletionRequests(),
      afterWrite: ({ method, url }) => {
        const isRequest = method === 'POST' && url.includes('/proxmoxmachinerequests');
        if (isRequest || this.#process === this.#installation.driver) return;
        const { pathname } = new URL(url);
        this.#state.reportViolation(
          `${method} ${pathname} took effect, but its process is no driver`,
        );
      },
    };
  }

  #wrap<Port extends object>(
    port: Port,
    checks: {
      readonly before: Check;
      readonly after: (name: string, args: readonly unknown[], answer: unknown) => void;
    },
  ): Port {
    const call = async (name: string, args: readonly unknown[], work: () => unknown) => {
      if (!WRITE_CALLS.includes(name)) await this.#stallIfDue();
      if (this.#process.isKilled) throw new SimulatedCrash('the process was killed');
      if (WRITE_CALLS.includes(name)) this.#checkLease(name);
      await checks.before(name, args);
      const answer: unknown = await work();
      checks.after(name, args, answer);
      return answer;
    };
    return new Proxy(port, {
      get: (target, name, receiver) => {
        const member: unknown = Reflect.get(target, name, receiver);
        if (typeof member !== 'function') return member;
        if (name === 'volumeId') return member.bind(target) as unknown;
        return (...args: unknown[]) =>
          call(String(name), args, () => member.apply(target, args) as unknown);
      },
    });
  }

  async #stallIfDue(): Promise<void> {
    const { stall } = this.#process;
    if (stall === undefined) return;
    stall.callsLeft -= 1;
    if (stall.callsLeft > 0) return;
    this.#process.stall = undefined;
    await this.#state.clock.sleep(stall.ms);
  }

  #checkLease(name: string): void {
    const isValid = this.#state.now < this.#process.leaseUntil;
    if (isValid && this.#process === this.#installation.driver) return;
    this.#state.reportViolation(`${name} was called by a process that no longer holds the lease`);
  }

  #checkVmChange(name: string, region: string, { vmId }: VmRef): void {
    const { vms, runningTasks } = this.#state.region(region).sim.inspect();
    const upid = this.#tasks.get(`${region}/${vmId}`);
    if (runningTasks.some((task) => task.upid === upid)) {
      this.#state.reportViolation(
        `${name} was called for VM ${vmId} while its task ${upid ?? ''} is running`,
      );
    }
    const vm = vms.find(({ id }) => id === vmId);
    if (vm === undefined) return;
    if (this.#state.isUnmanaged(region, vmId) || !this.#isOwn(region, vm))
      this.#state.reportViolation(`${name} was called for unmanaged VM ${region}/${vmId}`);
    else if (name === 'destroyVm') this.#checkDestroy(region, vm);
  }

  #isOwn(region: string, vm: Vm): boolean {
    return readOwnMarker(this.#installation, region, vm) !== undefined;
  }

  /** A machine that was ready is deleted on request or by a stated policy, and marked before its VM is destroyed. */
  #checkDestroy(region: string, vm: Vm): void {
    const marker = readOwnMarker(this.#installation, region, vm);
    if (marker?.readySinceSeconds === undefined) return;
    const { machine, deletingSinceSeconds } = marker;
    if (deletingSinceSeconds === undefined)
      this.#state.reportViolation(`ready VM ${region}/${vm.id} was destroyed without a mark`);
    const { deletionRequested } = this.#installation;
    if (!deletionRequested.has(machine) && !this.#installation.isLost(machine))
      this.#state.reportViolation(`ready VM ${region}/${vm.id} was destroyed without a request`);
  }

  async #checkCreate(name: string, region: string, { vmId, host }: VmRef): Promise<void> {
    const machines = await this.#installation.machines();
    const known = machines.find(
      ({ phase, placement }) =>
        phase === 'creating' &&
        placement?.region === region &&
        placement.vmId === vmId &&
        placement.host === host,
    );
    if (known === undefined) {
      this.#state.reportViolation(
        `${name} was called for VM ${vmId} before its record was durable`,
      );
      return;
    }
    if (!this.#installation.hasReplacedDatabase) this.#checkLimit(known, machines);
  }

  #checkLimit({ id, pool }: Machine, machines: readonly Machine[]): void {
    const isOver = new Set(
      machines.filter(({ phase }) => OVER_PHASES.includes(phase)).map((machine) => machine.id),
    );
    const others = listOwnVms(this.#state, this.#installation).filter(
      ({ marker }) =>
        marker.pool === pool &&
        marker.machine !== id &&
        marker.deletingSinceSeconds === undefined &&
        !isOver.has(marker.machine) &&
        !this.#installation.restored.has(marker.machine),
    );
    if (others.length >= this.#installation.maxSizeOf(pool))
      this.#state.reportViolation(`pool ${pool} has ${others.length} VMs, and gets another`);
  }

  /** Seeds have the installation in their names. */
  #checkVolume(volume: string): void {
    if (!volume.includes(`pvescaler_${this.#installation.id}_`))
      this.#state.reportViolation(`${volume} was deleted, which is no seed of this installation`);
  }

  #checkNodeChange(name: string, { name: node }: NodeRef): void {
    if (isUnmanagedNode(node)) {
      this.#state.reportViolation(`${name} was called for unmanaged Node ${node}`);
      return;
    }
    if (name !== 'deleteNode') return;
    const { cluster, takenOver, hasReplacedDatabase } = this.#installation;
    const uuid = cluster?.state.nodes.get(node)?.systemUuid ?? '';
    // Older records may give a machine a second VM, whose Node is the same.
    if (uuid === '' || takenOver.has(uuid) || hasReplacedDatabase) return;
    const running = [...this.#state.inspections().values()]
      .flatMap(({ vms }) => vms)
      .find((vm) => vm.running && smbiosUuidOf(vm) === uuid);
    if (running !== undefined)
      this.#state.reportViolation(`Node ${node} was deleted while its VM ${running.id} runs`);
  }
}
