// SPDX-License-Identifier: Apache-2.0
// Limits creations in progress per host and per storage: Proxmox locks a storage while it allocates, and ten
// clones at the same time end in lock timeouts.
import type { Machine, Phase } from '../../model/machine.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { RegionSettings } from '../context/settings.ts';
import type { MachineIndex } from '../records/machine-index.ts';

export const CREATION_PHASES: readonly Phase[] = ['placed', 'creating'];

export class CreationLimits {
  readonly #region: RegionSettings;
  readonly #view: RegionView;
  readonly #machines: readonly Machine[];

  constructor(region: RegionSettings, view: RegionView, index: Pick<MachineIndex, 'inPhase'>) {
    this.#region = region;
    this.#view = view;
    this.#machines = index
      .inPhase(...CREATION_PHASES)
      .filter(({ placement }) => placement?.region === region.name);
  }

  busyHosts(): readonly string[] {
    return this.#view.hosts.map(({ name }) => name).filter((host) => this.#isHostBusy(host));
  }

  isStorageBusy(host: string, storage: string): boolean {
    const isShared = this.#view.hosts
      .find(({ name }) => name === host)
      ?.storages.some(({ name, shared }) => name === storage && shared);
    const there = this.#machines.filter(
      ({ placement }) =>
        placement?.diskStorage === storage && (isShared === true || placement.host === host),
    );
    return there.length >= this.#region.limits.createsPerStorage;
  }

  #isHostBusy(host: string): boolean {
    const there = this.#machines.filter(({ placement }) => placement?.host === host);
    return there.length >= this.#region.limits.createsPerHost;
  }
}
