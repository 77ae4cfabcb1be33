// SPDX-License-Identifier: Apache-2.0
// Starts and stops the guest of a VM: its boot disk, its seed, and the disk state that it leaves.
import type { Core } from '../core.ts';
import type { GuestBehaviour, GuestInput } from '../guest/guest.ts';
import type { RunningVm, Vm, Volume } from '../state/model.ts';
import { findVolume } from '../storage/volumes.ts';
import { cpuCount, isAgentEnabled, memoryMib, parseSmbiosUuid } from './config.ts';
import {
  isCdrom,
  isCloudInit,
  parseBootOrder,
  parseDrive,
  parseDrives,
  parseNics,
} from './drives.ts';

/** The boot disk of the VM; undefined when it boots from the network. */
export function findBootVolume(core: Core, vm: Vm): Volume | undefined {
  for (const name of parseBootOrder(vm.config)) {
    const text = vm.config[name];
    if (text === undefined) continue;
    if (name.startsWith('net')) return undefined;
    const drive = parseDrive(name, text);
    if (isCdrom(drive) || isCloudInit(drive)) continue;
    return findVolume(core.state, vm.host, drive.file);
  }
  return undefined;
}

function seedIso(core: Core, vm: Vm): Uint8Array | undefined {
  for (const [, drive] of parseDrives(vm.config)) {
    const bytes = isCdrom(drive) ? findVolume(core.state, vm.host, drive.file)?.bytes : undefined;
    if (bytes !== undefined && bytes.length > 0) return bytes;
  }
  return undefined;
}

const CLOUD_INIT =
  /^(?:name|ciuser|cipassword|ciupgrade|citype|sshkeys|nameserver|searchdomain|cicustom|ipconfig\d+)$/;

function cloudInitDrive(vm: Vm): Record<string, string> | undefined {
  if (!parseDrives(vm.config).some(([, drive]) => isCloudInit(drive))) return undefined;
  return Object.fromEntries(Object.entries(vm.config).filter(([name]) => CLOUD_INIT.test(name)));
}

function matchesPattern(pattern: string, text: string | undefined): boolean {
  if (text === undefined) return false;
  const source = pattern.replaceAll(/[$()+.?[\\]^{|}]/g, String.raw`\$&`).replaceAll('*', '.*');
  return new RegExp(`^${source}$`).test(text);
}

function findBehaviour(core: Core, vm: Vm, image: string | undefined): GuestBehaviour {
  if (vm.behaviour !== undefined) return vm.behaviour;
  const rule = core.state.guestRules.find(
    ({ match }) => matchesPattern(match, image) || matchesPattern(match, vm.config['name']),
  );
  return rule?.behaviour ?? 'normal';
}

function guestInput(core: Core, vm: Vm): GuestInput {
  const { state } = core;
  const volume = findBootVolume(core, vm);
  return {
    vmId: vm.id,
    smbiosUuid: parseSmbiosUuid(vm.config),
    cpus: cpuCount(vm.config),
    memoryBytes: memoryMib(vm.config) * 2 ** 20,
    interfaces: parseNics(vm.config).map(([slot, nic]) => ({
      slot,
      mac: nic.mac ?? '',
      bridge: nic.options['bridge'] ?? '',
    })),
    disk: {
      image: volume?.image,
      isFirstBoot: volume?.everBooted !== true,
      sizeBytes: volume?.size ?? 0,
      state: volume?.guestState,
    },
    seedIso: seedIso(core, vm),
    cloudInitDrive: cloudInitDrive(vm),
    agentEnabled: isAgentEnabled(vm.config),
    behaviour: findBehaviour(core, vm, volume?.image),
    clock: state.clock,
    random: state.random,
    speed: state.speed,
    connect: core.connect,
    leaseAddress: (mac, bridge) => {
      const network = state.hosts.get(vm.host)?.bridges.find(({ name }) => name === bridge)?.dhcp;
      return network === undefined ? '' : state.dhcpLeases.lease(mac, network);
    },
  };
}

/** A guest that boots again continues from there. */
export function saveGuestDiskState(core: Core, vm: Vm, running: RunningVm): void {
  const volume = findBootVolume(core, vm);
  if (volume === undefined) return;
  volume.guestState = running.guest.diskState();
  volume.everBooted = true;
}

/** Called when the VM is off, to apply pending changes. */
export type OnPoweredOff = (vm: Vm) => void;

export function powerOn(core: Core, vm: Vm, onPoweredOff: OnPoweredOff): void {
  const guest = core.createGuest(guestInput(core, vm));
  const running: RunningVm = {
    guest,
    startedAt: core.state.clock.now(),
    agentReadyAt: undefined,
    pid: (core.state.hosts.get(vm.host)?.nextPid ?? 1) + 1,
    paused: false,
    bootConfig: { ...vm.config },
  };
  vm.running = running;
  core.state.recordStatus(vm);
  guest.onChange(() => {
    if (guest.isAgentRunning()) running.agentReadyAt ??= core.state.clock.now();
    if (!guest.isPoweredOff || vm.running !== running) return;
    saveGuestDiskState(core, vm, running);
    vm.running = undefined;
    onPoweredOff(vm);
    core.state.recordStatus(vm);
  });
  guest.start();
}

/** Hard power-off. */
export function powerOff(core: Core, vm: Vm, onPoweredOff: OnPoweredOff): void {
  const { running } = vm;
  if (running === undefined) return;
  vm.running = undefined;
  saveGuestDiskState(core, vm, running);
  running.guest.stop();
  onPoweredOff(vm);
  core.state.recordStatus(vm);
}
