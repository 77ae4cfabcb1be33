// SPDX-License-Identifier: Apache-2.0
// Between a VM and the guest inside it: which disk it boots, which seed it reads, what it leaves on the disk.
import type { Core } from '../core.ts';
import { createGuest, type GuestBehaviour, type GuestInput } from '../guest/guest.ts';
import { findVolume } from '../storage/volumes.ts';
import type { Running, Vm, Volume } from '../world/model.ts';
import { agentEnabled, cpusOf, memoryMib, smbiosUuid } from './config.ts';
import { bootOrder, drivesOf, isCdrom, isCloudInit, nicsOf, parseDrive } from './drives.ts';

/** The disk that the VM boots from; undefined when it boots from the network. */
export function bootVolume(core: Core, vm: Vm): Volume | undefined {
  for (const name of bootOrder(vm.config)) {
    const text = vm.config[name];
    if (text === undefined) continue;
    if (name.startsWith('net')) return undefined;
    const drive = parseDrive(name, text);
    if (isCdrom(drive) || isCloudInit(drive)) continue;
    return findVolume(core.world, vm.host, drive.file);
  }
  return undefined;
}

function seedIso(core: Core, vm: Vm): Uint8Array | undefined {
  for (const [, drive] of drivesOf(vm.config)) {
    const bytes = isCdrom(drive) ? findVolume(core.world, vm.host, drive.file)?.bytes : undefined;
    if (bytes !== undefined && bytes.length > 0) return bytes;
  }
  return undefined;
}

const CLOUD_INIT =
  /^(?:name|ciuser|cipassword|ciupgrade|citype|sshkeys|nameserver|searchdomain|cicustom|ipconfig\d+)$/;

function cloudInitDrive(vm: Vm): Record<string, string> | undefined {
  if (!drivesOf(vm.config).some(([, drive]) => isCloudInit(drive))) return undefined;
  return Object.fromEntries(Object.entries(vm.config).filter(([name]) => CLOUD_INIT.test(name)));
}

function matches(pattern: string, text: string | undefined): boolean {
  if (text === undefined) return false;
  const source = pattern.replaceAll(/[$()+.?[\\]^{|}]/g, String.raw`\$&`).replaceAll('*', '.*');
  return new RegExp(`^${source}$`).test(text);
}

function behaviourOf(core: Core, vm: Vm, image: string | undefined): GuestBehaviour {
  if (vm.behaviour !== undefined) return vm.behaviour;
  const rule = core.world.guestRules.find(
    ({ match }) => matches(match, image) || matches(match, vm.config['name']),
  );
  return rule?.behaviour ?? 'normal';
}

function guestInput(core: Core, vm: Vm): GuestInput {
  const { world } = core;
  const volume = bootVolume(core, vm);
  return {
    vmId: vm.id,
    smbiosUuid: smbiosUuid(vm.config),
    cpus: cpusOf(vm.config),
    memoryBytes: memoryMib(vm.config) * 2 ** 20,
    interfaces: nicsOf(vm.config).map(([slot, nic]) => ({
      slot,
      mac: nic.mac ?? '',
      bridge: nic.options['bridge'] ?? '',
    })),
    disk: {
      image: volume?.image,
      firstBoot: volume?.everBooted !== true,
      sizeBytes: volume?.size ?? 0,
      state: volume?.guestState,
    },
    seedIso: seedIso(core, vm),
    cloudInitDrive: cloudInitDrive(vm),
    agentEnabled: agentEnabled(vm.config),
    behaviour: behaviourOf(core, vm, volume?.image),
    clock: world.clock,
    random: world.random,
    speed: world.speed,
    connect: core.connect,
    leaseAddress: (mac, bridge) => {
      const network = world.hosts.get(vm.host)?.bridges.find(({ name }) => name === bridge)?.dhcp;
      return network === undefined ? '' : world.leases.lease(mac, network);
    },
  };
}

function remember(core: Core, vm: Vm, running: Running): void {
  const volume = bootVolume(core, vm);
  if (volume === undefined) return;
  volume.guestState = running.guest.diskState();
  volume.everBooted = true;
}

/** The VM is off: pending changes take effect. */
export type AfterStop = (vm: Vm) => void;

export function powerOn(core: Core, vm: Vm, afterStop: AfterStop): void {
  const guest = createGuest(guestInput(core, vm));
  const running: Running = {
    guest,
    startedAt: core.world.clock.now(),
    agentSince: undefined,
    pid: (core.world.hosts.get(vm.host)?.nextPid ?? 1) + 1,
    paused: false,
    bootConfig: { ...vm.config },
  };
  vm.running = running;
  core.world.touch(vm);
  guest.onChange(() => {
    if (guest.agentAnswers()) running.agentSince ??= core.world.clock.now();
    if (!guest.poweredOff || vm.running !== running) return;
    remember(core, vm, running);
    vm.running = undefined;
    afterStop(vm);
    core.world.touch(vm);
  });
  guest.start();
}

/** Pulls the plug. */
export function powerOff(core: Core, vm: Vm, afterStop: AfterStop): void {
  const { running } = vm;
  if (running === undefined) return;
  vm.running = undefined;
  remember(core, vm, running);
  running.guest.stop();
  afterStop(vm);
  core.world.touch(vm);
}
