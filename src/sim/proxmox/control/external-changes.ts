// SPDX-License-Identifier: Apache-2.0
// External changes: what an administrator at the console or a power failure does to the cluster. They take no
// time and need no permission.
import type { Core } from '../core.ts';
import type { Vm } from '../state/model.ts';
import { addVolume, splitVolumeId, volumesOn } from '../storage/volumes.ts';
import { normaliseTags } from '../vm/config.ts';
import { emptyVm } from '../vm/create.ts';
import { findOwnedVolumes, removeVmRecords } from '../vm/destroy.ts';
import { formatDrive, formatNic, isPlainCdrom, parseDrives, parseNic } from '../vm/drives.ts';
import { powerOff, powerOn, saveGuestDiskState } from '../vm/guest-lifecycle.ts';
import { moveVmToHost } from '../vm/migrate.ts';
import { applyPending } from '../vm/pending.ts';

export class ExternalChanges {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  rename(id: number, name: string): void {
    this.setOption(id, 'name', name);
  }

  retag(id: number, tags: readonly string[]): void {
    this.setOption(id, 'tags', normaliseTags(this.#core.state, tags.join(';')));
  }

  describe(id: number, description: string): void {
    this.setOption(id, 'description', description);
  }

  /** Sets any option, `lock` included; undefined removes it. */
  setOption(id: number, name: string, value: string | undefined): void {
    const vm = this.#vm(id);
    if (value === undefined) delete vm.config[name];
    else vm.config[name] = value;
    this.#core.state.recordStatus(vm);
  }

  migrate(id: number, host: string): void {
    moveVmToHost(this.#core, this.#vm(id), host);
  }

  /** Full clone as in the web interface: copies tags and description, too. */
  copy(id: number, newId: number): void {
    const { state } = this.#core;
    const source = this.#vm(id);
    const vm = emptyVm(newId, source.host, state.clock.now());
    for (const [name, value] of Object.entries(source.config)) {
      if (/^(?:unused\d+|template|lock)$/.test(name)) continue;
      const isNic = /^net\d+$/.test(name);
      vm.config[name] = isNic
        ? formatNic({ ...parseNic(value), mac: undefined }, state.generateMac())
        : value;
    }
    vm.config['smbios1'] = `uuid=${state.random.uuid()}`;
    this.#copyDisks(source, vm);
    state.vms.set(newId, vm);
    state.recordStatus(vm);
  }

  start(id: number): void {
    const vm = this.#vm(id);
    if (vm.running === undefined) powerOn(this.#core, vm, applyPending);
  }

  stop(id: number): void {
    powerOff(this.#core, this.#vm(id), applyPending);
  }

  /** Deletes the VM and its disks, even while it runs. */
  delete(id: number): void {
    const vm = this.#vm(id);
    powerOff(this.#core, vm, applyPending);
    for (const file of findOwnedVolumes(this.#core, vm)) this.deleteVolume(vm.host, file);
    removeVmRecords(this.#core, vm);
  }

  deleteVolume(host: string, volumeId: string): void {
    const id = splitVolumeId(volumeId);
    const storage = this.#core.state.storages.get(id?.storage ?? '');
    if (id !== undefined && storage !== undefined) volumesOn(storage, host).delete(id.name);
  }

  /** Power failure: guests stop, tasks abort, the API is unreachable. */
  hostDown(name: string): void {
    const { state, tasks } = this.#core;
    const host = state.hosts.get(name);
    if (host?.online !== true) return;
    host.online = false;
    host.onlineChangedAt = state.clock.now();
    tasks.abortTasksOn(name);
    for (const vm of state.vms.values()) {
      if (vm.host !== name || vm.running === undefined) continue;
      saveGuestDiskState(this.#core, vm, vm.running);
      vm.running.guest.stop();
      vm.running = undefined;
    }
    this.#countVotes();
  }

  /** Boots the host; only VMs with `onboot` start. */
  hostUp(name: string): void {
    const { state } = this.#core;
    const host = state.hosts.get(name);
    if (host === undefined || host.online) return;
    host.online = true;
    host.onlineChangedAt = state.clock.now();
    for (const vm of state.vms.values()) {
      if (vm.host !== name) continue;
      state.recordStatus(vm);
      if (vm.config['onboot'] === '1') powerOn(this.#core, vm, applyPending);
    }
    this.#countVotes();
  }

  setStorageActive(id: string, active: boolean): void {
    const storage = this.#core.state.storages.get(id);
    if (storage !== undefined) storage.active = active;
  }

  setStorageEnabled(id: string, enabled: boolean): void {
    const storage = this.#core.state.storages.get(id);
    if (storage !== undefined) storage.enabled = enabled;
  }

  setQuorum(quorate: boolean): void {
    this.#core.state.quorate = quorate;
  }

  #countVotes(): void {
    const hosts = [...this.#core.state.hosts.values()];
    const online = hosts.filter((host) => host.online).length;
    this.#core.state.quorate = online > hosts.length / 2;
  }

  #copyDisks(source: Vm, vm: Vm): void {
    const { state } = this.#core;
    for (const [slot, drive] of parseDrives(source.config)) {
      const id = splitVolumeId(drive.file);
      const storage = state.storages.get(id?.storage ?? '');
      if (isPlainCdrom(drive) || id === undefined || storage === undefined) continue;
      const volume = volumesOn(storage, source.host).get(id.name);
      if (volume === undefined) continue;
      const { size, format, image, everBooted } = volume;
      const guestState = structuredClone(volume.guestState);
      const fresh = { vmId: vm.id, size, format, image, guestState, everBooted };
      const file = addVolume(state, { storage, host: source.host }, fresh);
      vm.config[slot] = formatDrive({ ...drive, file });
    }
  }

  #vm(id: number): Vm {
    const vm = this.#core.state.vms.get(id);
    if (vm === undefined) throw new Error(`VM ${id} does not exist in the simulated cluster`);
    return vm;
  }
}
