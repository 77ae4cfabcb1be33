// SPDX-License-Identifier: Apache-2.0
// One boot, from the firmware to `running`, timed by the durations table.

import { CloudInit } from './cloud-init/cloud-init.ts';
import { applyBootSettings } from './commands/boot-settings.ts';
import type { GuestShell } from './commands/guest-shell.ts';
import { startUnit } from './commands/units.ts';
import { GUEST_BOOT_DURATIONS_MS as DURATIONS_MS, GUEST_BOOT_JITTER } from './durations.ts';
import type { GuestPhase } from './guest-types.ts';
import type { GuestSystem } from './system/system.ts';

export interface BootContext {
  readonly system: GuestSystem;
  readonly shell: GuestShell;
  enterPhase(phase: GuestPhase): void;
}

const AGENT = 'qemu-guest-agent';

/** Ends with a running guest, a hung guest, or in the firmware phase (never-boots). Rejects on power-off. */
export async function runBoot(boot: BootContext): Promise<void> {
  const { system, shell } = boot;
  const { behaviour, disk } = system.input;
  boot.enterPhase('firmware');
  if (behaviour === 'never-boots') return;
  await waitWithJitter(
    system,
    DURATIONS_MS.firmware + (disk.image === undefined ? DURATIONS_MS.netboot : 0),
  );
  boot.enterPhase('kernel');
  system.beginBoot();
  await waitWithJitter(
    system,
    DURATIONS_MS.kernel + (disk.isFirstBoot && system.boots === 1 ? DURATIONS_MS.firstBoot : 0),
  );
  applyBootSettings(system);
  boot.enterPhase('cloud-init');
  const cloudInit = new CloudInit(system, shell);
  await bringUpNetwork(system, cloudInit);
  await startAgent(system);
  await waitWithJitter(system, DURATIONS_MS.cloudInitNetwork);
  await cloudInit.runNetworkStage();
  // A hung guest briefly has an address and an agent, but never runs the commands that would join it.
  if (behaviour === 'hangs') return boot.enterPhase('hung');
  await startEnabledUnits(boot);
  await waitWithJitter(system, DURATIONS_MS.cloudInitConfig + DURATIONS_MS.cloudInitFinal);
  await cloudInit.runFinalStage();
  system.isBootFinished = true;
  boot.enterPhase('running');
}

async function waitWithJitter(system: GuestSystem, ms: number): Promise<void> {
  await system.sleepSimulated(ms * (1 + GUEST_BOOT_JITTER * system.input.random.fraction()));
}

async function bringUpNetwork(system: GuestSystem, cloudInit: CloudInit): Promise<void> {
  await waitWithJitter(system, DURATIONS_MS.cloudInitLocal);
  cloudInit.runLocalStage();
  system.notifyChange();
  if (!system.network.needsLease) return;
  await waitWithJitter(system, DURATIONS_MS.dhcp);
  system.network.requestLeases((mac, bridge) => system.input.leaseAddress(mac, bridge));
  system.notifyChange();
}

/** As in a real guest, udev starts the agent at boot when the virtio port exists. */
async function startAgent(system: GuestSystem): Promise<void> {
  if (!system.packages.has(AGENT) || !system.input.agentEnabled) return;
  await waitWithJitter(system, DURATIONS_MS.agentStart);
  system.activeUnits.add(AGENT);
  system.notifyChange();
}

async function startEnabledUnits({ system, shell }: BootContext): Promise<void> {
  for (const unit of [...system.enabledUnits].sort()) {
    if (unit !== AGENT) await startUnit({ unit, system, runner: shell });
  }
}
