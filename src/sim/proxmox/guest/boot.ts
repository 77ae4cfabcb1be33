// SPDX-License-Identifier: Apache-2.0
// One boot, from the firmware to `running`, as a walk along the durations table.
import { GUEST_BOOT_DURATIONS as DURATIONS } from './boot-durations.ts';
import { CloudInit } from './cloud-init/cloud-init.ts';
import { applyBootSettings } from './commands/boot-settings.ts';
import type { GuestShell } from './commands/guest-shell.ts';
import { startUnit } from './commands/units.ts';
import type { GuestPhase } from './guest-types.ts';
import type { GuestSystem } from './system/system.ts';

export interface Boot {
  readonly system: GuestSystem;
  readonly shell: GuestShell;
  enter(phase: GuestPhase): void;
}

const AGENT = 'qemu-guest-agent';

/** Rejects when the power goes; otherwise ends in a running guest, a hung one, or in the firmware for ever. */
export async function runBoot(boot: Boot): Promise<void> {
  const { system, shell } = boot;
  const { behaviour, disk } = system.input;
  boot.enter('firmware');
  if (behaviour === 'never-boots') return;
  await take(system, DURATIONS.firmware + (disk.image === undefined ? DURATIONS.netboot : 0));
  boot.enter('kernel');
  system.beginBoot();
  await take(
    system,
    DURATIONS.kernel + (disk.firstBoot && system.boots === 1 ? DURATIONS.firstBoot : 0),
  );
  applyBootSettings(system);
  boot.enter('cloud-init');
  const cloudInit = new CloudInit(system, shell);
  await bringUpNetwork(system, cloudInit);
  await startAgent(system);
  await take(system, DURATIONS.cloudInitNetwork);
  await cloudInit.network();
  // A hung guest has an address and an agent for a moment, and never reaches the commands that would join it.
  if (behaviour === 'hangs') return boot.enter('hung');
  await startEnabledUnits(boot);
  await take(system, DURATIONS.cloudInitConfig + DURATIONS.cloudInitFinal);
  await cloudInit.final();
  system.bootFinished = true;
  boot.enter('running');
}

async function take(system: GuestSystem, ms: number): Promise<void> {
  await system.pass(ms * (1 + DURATIONS.jitter * system.input.random.fraction()));
}

async function bringUpNetwork(system: GuestSystem, cloudInit: CloudInit): Promise<void> {
  await take(system, DURATIONS.cloudInitLocal);
  cloudInit.local();
  system.changed();
  if (!system.network.waitsForLease) return;
  await take(system, DURATIONS.dhcp);
  system.network.lease((mac, bridge) => system.input.leaseAddress(mac, bridge));
  system.changed();
}

/** At boot udev starts it as soon as the virtio port is there; only then. */
async function startAgent(system: GuestSystem): Promise<void> {
  if (!system.packages.has(AGENT) || !system.input.agentEnabled) return;
  await take(system, DURATIONS.agentStart);
  system.activeUnits.add(AGENT);
  system.changed();
}

async function startEnabledUnits({ system, shell }: Boot): Promise<void> {
  for (const unit of [...system.enabledUnits].sort()) {
    if (unit !== AGENT) await startUnit({ unit, system, runner: shell });
  }
}
