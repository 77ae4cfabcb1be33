// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { PvescalerError } from '../ports/errors.ts';
import type { CallOptions, VmConfig, VmSummary } from '../ports/hypervisor.ts';
import type { ApiClient } from './api-client.ts';
import { parseVmConfig } from './vm-config.ts';
import { encodeSegment } from './wire-values.ts';

type Size = Pick<VmConfig, 'cpus' | 'memoryBytes'>;

interface KnownSize {
  readonly host: string;
  /** Digest of the configuration from which the size was read. The same digest means the same size. */
  readonly digest: string;
  readonly size: Size;
  /** Fingerprint of the VM in `/cluster/resources` at that time; undefined if it had no values. */
  readonly fingerprint: string | undefined;
}

/** Time per view to read configurations of one host; the rest is read by later views. */
const MAX_READING_MS = 3_000;
/** A slow host must not make every view slow. */
const READ_TIMEOUT_MS = 5_000;
const RETRY_AFTER_MS = 60_000;

interface VmSizesOptions {
  readonly api: ApiClient;
  readonly clock: Clock;
}

/**
 * Reads CPUs and memory of VMs from their configurations. `/cluster/resources` is not sufficient: it shows a new VM only
 * after ten seconds, in which its memory could be allocated twice, and never more vCPUs than the host has. But it shows
 * which VMs to read again: a configuration is read when its VM is new, and when name, tags, power, host or size in
 * `/cluster/resources` have changed. An unchanged VM costs no request. A change that is pending until the next start is
 * noticed at that start, or when its configuration is read for another reason.
 */
export class VmSizes {
  readonly #api: ApiClient;
  readonly #clock: Clock;
  readonly #known = new Map<number, KnownSize>();
  /** When to retry a host that did not respond, or a VM that could not be read. */
  readonly #retryAt = new Map<string | number, number>();

  constructor(options: VmSizesOptions) {
    this.#api = options.api;
    this.#clock = options.clock;
  }

  /** Skips VMs that are being created: their configuration is incomplete until the task ends. */
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
    await Promise.all(
      [...byHost].map(([host, unreadVms]) => this.#readConfigsOn(host, unreadVms, options)),
    );
    return vms.map((vm) => withSize(vm, this.#known.get(vm.vmId)?.size));
  }

  /** Records the size in a configuration that was read for another reason. */
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
    // Missing values in /cluster/resources do not indicate a change.
    if (fingerprint === undefined || fingerprint === known.fingerprint) return false;
    const hasCaughtUp = known.fingerprint === undefined && hasSameSize(vm, known.size);
    if (hasCaughtUp) this.#known.set(vm.vmId, { ...known, fingerprint });
    return !hasCaughtUp;
  }

  /** Reads sequentially and stops when the host does not respond. */
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
        // A VM that was deleted or may not be read does not fail the view.
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
    const complete = new Set(vms.filter((vm) => !vm.isBeingCreated).map((vm) => vm.vmId));
    for (const vmId of this.#known.keys()) if (!complete.has(vmId)) this.#known.delete(vmId);
    for (const key of this.#retryAt.keys()) {
      if (typeof key === 'number' && !complete.has(key)) this.#retryAt.delete(key);
    }
  }
}

/** Undefined while `/cluster/resources` has no values for the VM. */
function fingerprintOf(vm: VmSummary): string | undefined {
  if (vm.cpus === undefined || vm.memoryBytes === undefined) return undefined;
  const { power, name, tags, isTemplate, cpus, memoryBytes } = vm;
  return JSON.stringify([power, name, tags, isTemplate, cpus, memoryBytes]);
}

function hasSameSize(vm: VmSummary, size: Size): boolean {
  return vm.cpus === size.cpus && vm.memoryBytes === size.memoryBytes;
}

/** A running VM keeps the size it was started with until its next start, so the larger of both counts. */
function withSize(vm: VmSummary, read: Size | undefined): VmSummary {
  if (read === undefined) return vm;
  const started = vm.power === 'running' ? vm : undefined;
  return {
    ...vm,
    cpus: Math.max(read.cpus, started?.cpus ?? 0),
    memoryBytes: Math.max(read.memoryBytes, started?.memoryBytes ?? 0),
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
