// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { PvescalerError } from '../ports/errors.ts';
import type { CallOptions, VmConfig, VmSummary } from '../ports/hypervisor.ts';
import type { ApiClient } from './api-client.ts';
import { encodeSegment } from './form.ts';
import { parseVmConfig } from './vm-config.ts';

type Size = Pick<VmConfig, 'cpus' | 'memoryBytes'>;

interface KnownSize {
  readonly host: string;
  /** Of the configuration that the size was read from: as long as it is the same, so is the size. */
  readonly digest: string;
  readonly size: Size;
  /** What the overview showed when it was read; undefined while it showed nothing. */
  readonly fingerprint: string | undefined;
}

/** A region seen for the first time is learnt over several views rather than in one long one. */
const MAX_READING_MS = 3_000;
/** A host that answers slowly must not make every view slow. */
const READ_TIMEOUT_MS = 5_000;
const RETRY_AFTER_MS = 60_000;

interface VmSizesOptions {
  readonly api: ApiClient;
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
export class VmSizes {
  readonly #api: ApiClient;
  readonly #clock: Clock;
  readonly #known = new Map<number, KnownSize>();
  /** When a host that did not answer, or a VM that may not be read, is asked again. */
  readonly #retryAt = new Map<string | number, number>();

  constructor(options: VmSizesOptions) {
    this.#api = options.api;
    this.#clock = options.clock;
  }

  /** VMs that are being created are skipped: their configuration is incomplete until the task ends. */
  async applyTo(
    vms: readonly VmSummary[],
    online: ReadonlySet<string>,
    options: CallOptions,
  ): Promise<readonly VmSummary[]> {
    this.#forgetExcept(vms);
    const unread = vms.filter(
      (vm) => online.has(vm.host) && !vm.isBeingCreated && this.#mayHaveChanged(vm),
    );
    const byHost = Map.groupBy(unread, (vm) => vm.host);
    await Promise.all([...byHost].map(([host, some]) => this.#readConfigsOn(host, some, options)));
    return vms.map((vm) => withSize(vm, this.#known.get(vm.vmId)?.size));
  }

  /** A configuration that somebody has read anyway. */
  record(config: VmConfig): void {
    if (config.isBeingCreated) return;
    const known = this.#known.get(config.vmId);
    if (known?.digest === config.digest && known.host === config.host) return;
    this.#remember(config, known?.fingerprint);
  }

  #mayHaveChanged(vm: VmSummary): boolean {
    const known = this.#known.get(vm.vmId);
    if (known === undefined || known.host !== vm.host) return true;
    const fingerprint = fingerprintOf(vm);
    // An overview that knows nothing of the VM yet, or no longer, is no sign of a change.
    if (fingerprint === undefined || fingerprint === known.fingerprint) return false;
    const hasCaughtUp = known.fingerprint === undefined && hasSameSize(vm, known.size);
    if (hasCaughtUp) this.#known.set(vm.vmId, { ...known, fingerprint });
    return !hasCaughtUp;
  }

  /** One after the other, and no further once the host does not answer. */
  async #readConfigsOn(
    host: string,
    vms: readonly VmSummary[],
    options: CallOptions,
  ): Promise<void> {
    if (this.#isBackedOff(host)) return;
    const stopAt = this.#clock.monotonic() + MAX_READING_MS;
    for (const vm of vms) {
      if (this.#clock.monotonic() > stopAt) return;
      if (this.#isBackedOff(vm.vmId)) continue;
      try {
        await this.#readConfig(vm, options);
      } catch (error) {
        // A VM that is gone meanwhile, or not for us to see, does not spoil the view.
        if (isNotFound(error)) continue;
        if (isCancelled(error)) throw error;
        const isHostError = isHostFailure(error);
        this.#retryAt.set(isHostError ? host : vm.vmId, this.#clock.monotonic() + RETRY_AFTER_MS);
        if (isHostError) return;
      }
    }
  }

  #isBackedOff(key: string | number): boolean {
    return (this.#retryAt.get(key) ?? 0) > this.#clock.monotonic();
  }

  async #readConfig(vm: VmSummary, options: CallOptions): Promise<void> {
    const data = await this.#api.requestData({
      method: 'GET',
      path: `/nodes/${encodeSegment(vm.host)}/qemu/${vm.vmId}/config`,
      operation: `read the size of VM ${vm.vmId} on ${vm.host}`,
      host: vm.host,
      repeatable: false,
      timeoutMs: READ_TIMEOUT_MS,
      ...options,
    });
    const { config } = parseVmConfig(vm, data);
    if (!config.isBeingCreated) this.#remember(config, fingerprintOf(vm));
  }

  #remember(config: VmConfig, fingerprint: string | undefined): void {
    const { vmId, host, digest, cpus, memoryBytes } = config;
    this.#known.set(vmId, { host, digest, size: { cpus, memoryBytes }, fingerprint });
  }

  #forgetExcept(vms: readonly VmSummary[]): void {
    const made = new Set(vms.filter((vm) => !vm.isBeingCreated).map((vm) => vm.vmId));
    for (const vmId of this.#known.keys()) if (!made.has(vmId)) this.#known.delete(vmId);
    for (const key of this.#retryAt.keys()) {
      if (typeof key === 'number' && !made.has(key)) this.#retryAt.delete(key);
    }
  }
}

/** Undefined while the overview has no figures of the VM. */
function fingerprintOf(vm: VmSummary): string | undefined {
  if (vm.cpus === undefined || vm.memoryBytes === undefined) return undefined;
  const { power, name, tags, isTemplate, cpus, memoryBytes } = vm;
  return JSON.stringify([power, name, tags, isTemplate, cpus, memoryBytes]);
}

function hasSameSize(vm: VmSummary, size: Size): boolean {
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

function isNotFound(error: unknown): boolean {
  return error instanceof PvescalerError && error.class === 'NotFound';
}

function isCancelled(error: unknown): boolean {
  return error instanceof PvescalerError && error.class === 'Cancelled';
}

function isHostFailure(error: unknown): boolean {
  return (
    error instanceof PvescalerError && (error.class === 'Unreachable' || error.class === 'TimedOut')
  );
}
