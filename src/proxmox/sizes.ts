// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { PvescalerError } from '../ports/errors.ts';
import type { CallOptions, VmConfig, VmSummary } from '../ports/hypervisor.ts';
import { segment } from './form.ts';
import type { Api } from './request.ts';
import { storedConfigOf } from './vm-config.ts';

type Size = Pick<VmConfig, 'cpus' | 'memoryBytes'>;

interface Known {
  readonly host: string;
  /** Of the configuration that the size was read from: as long as it is the same, so is the size. */
  readonly digest: string;
  readonly size: Size;
  /** What the overview showed when it was read; undefined while it showed nothing. */
  readonly sign: string | undefined;
}

/** A region seen for the first time is learnt over several views rather than in one long one. */
const READING_MS = 3_000;
/** A host that answers slowly must not make every view slow. */
const READ_TIMEOUT_MS = 5_000;
const REST_MS = 60_000;

interface Collaborators {
  readonly api: Api;
  readonly clock: Clock;
}

/**
 * What VMs take of their host, from their configurations. The overview does not do: it learns of a new VM only
 * after ten seconds, time enough to give its memory away twice, and never shows more vCPUs than the host has.
 * It does show, though, that a VM is worth reading again: a configuration is read when its VM is first seen,
 * and when name, tags, power, host or figures in the overview are others than at the last reading. A VM at
 * rest costs nothing. A change that waits for the next start shows when it is started, or when somebody
 * reads that configuration for another reason.
 */
export class Sizes {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #known = new Map<number, Known>();
  /** When a host that did not answer, or a VM that may not be read, is asked again. */
  readonly #askAgainAt = new Map<string | number, number>();

  constructor(collaborators: Collaborators) {
    this.#api = collaborators.api;
    this.#clock = collaborators.clock;
  }

  /** VMs that are being created are skipped: their configuration is incomplete until the task ends. */
  async fill(
    vms: readonly VmSummary[],
    online: ReadonlySet<string>,
    options: CallOptions,
  ): Promise<readonly VmSummary[]> {
    this.#forgetAllBut(vms);
    const unread = vms.filter(
      (vm) => online.has(vm.host) && !vm.isBeingCreated && this.#mayHaveChanged(vm),
    );
    const byHost = Map.groupBy(unread, (vm) => vm.host);
    await Promise.all([...byHost].map(([host, some]) => this.#learnOn(host, some, options)));
    return vms.map((vm) => withSize(vm, this.#known.get(vm.vmId)?.size));
  }

  /** A configuration that somebody has read anyway. */
  note(config: VmConfig): void {
    if (config.isBeingCreated) return;
    const known = this.#known.get(config.vmId);
    if (known?.digest === config.digest && known.host === config.host) return;
    this.#remember(config, known?.sign);
  }

  #mayHaveChanged(vm: VmSummary): boolean {
    const known = this.#known.get(vm.vmId);
    if (known === undefined || known.host !== vm.host) return true;
    const sign = signOf(vm);
    // An overview that knows nothing of the VM yet, or no longer, is no sign of a change.
    if (sign === undefined || sign === known.sign) return false;
    const hasCaughtUp = known.sign === undefined && showsWhatWasRead(vm, known.size);
    if (hasCaughtUp) this.#known.set(vm.vmId, { ...known, sign });
    return !hasCaughtUp;
  }

  /** One after the other, and no further once the host does not answer. */
  async #learnOn(host: string, vms: readonly VmSummary[], options: CallOptions): Promise<void> {
    if (this.#isResting(host)) return;
    const stopAt = this.#clock.monotonic() + READING_MS;
    for (const vm of vms) {
      if (this.#clock.monotonic() > stopAt) return;
      if (this.#isResting(vm.vmId)) continue;
      try {
        await this.#learn(vm, options);
      } catch (error) {
        // A VM that is gone meanwhile, or not for us to see, does not spoil the view.
        if (isGone(error)) continue;
        if (isCalledOff(error)) throw error;
        const isOfHost = isTrouble(error);
        this.#askAgainAt.set(isOfHost ? host : vm.vmId, this.#clock.monotonic() + REST_MS);
        if (isOfHost) return;
      }
    }
  }

  #isResting(what: string | number): boolean {
    return (this.#askAgainAt.get(what) ?? 0) > this.#clock.monotonic();
  }

  async #learn(vm: VmSummary, options: CallOptions): Promise<void> {
    const data = await this.#api.data({
      method: 'GET',
      path: `/nodes/${segment(vm.host)}/qemu/${vm.vmId}/config`,
      doing: `read the size of VM ${vm.vmId} on ${vm.host}`,
      host: vm.host,
      repeatable: false,
      timeoutMs: READ_TIMEOUT_MS,
      ...options,
    });
    const { config } = storedConfigOf(vm, data);
    if (!config.isBeingCreated) this.#remember(config, signOf(vm));
  }

  #remember(config: VmConfig, sign: string | undefined): void {
    const { vmId, host, digest, cpus, memoryBytes } = config;
    this.#known.set(vmId, { host, digest, size: { cpus, memoryBytes }, sign });
  }

  #forgetAllBut(vms: readonly VmSummary[]): void {
    const made = new Set(vms.filter((vm) => !vm.isBeingCreated).map((vm) => vm.vmId));
    for (const vmId of this.#known.keys()) if (!made.has(vmId)) this.#known.delete(vmId);
    for (const what of this.#askAgainAt.keys()) {
      if (typeof what === 'number' && !made.has(what)) this.#askAgainAt.delete(what);
    }
  }
}

/** Undefined while the overview has no figures of the VM. */
function signOf(vm: VmSummary): string | undefined {
  if (vm.cpus === undefined || vm.memoryBytes === undefined) return undefined;
  const { power, name, tags, isTemplate, cpus, memoryBytes } = vm;
  return JSON.stringify([power, name, tags, isTemplate, cpus, memoryBytes]);
}

function showsWhatWasRead(vm: VmSummary, size: Size): boolean {
  return vm.cpus === size.cpus && vm.memoryBytes === size.memoryBytes;
}

/** A running VM keeps what it was started with, whatever its configuration says about the next time. */
function withSize(vm: VmSummary, read: Size | undefined): VmSummary {
  if (read === undefined) return vm;
  const held = vm.power === 'running' ? vm : undefined;
  return {
    ...vm,
    cpus: Math.max(read.cpus, held?.cpus ?? 0),
    memoryBytes: Math.max(read.memoryBytes, held?.memoryBytes ?? 0),
  };
}

function isGone(error: unknown): boolean {
  return error instanceof PvescalerError && error.class === 'NotFound';
}

function isCalledOff(error: unknown): boolean {
  return error instanceof PvescalerError && error.class === 'Cancelled';
}

function isTrouble(error: unknown): boolean {
  return (
    error instanceof PvescalerError && (error.class === 'Unreachable' || error.class === 'TimedOut')
  );
}
