// SPDX-License-Identifier: Apache-2.0
import { DISABLED_FILE } from './cloud-init/cloud-init.ts';
import type { GuestPhase, GuestReport } from './guest-types.ts';
import type { GuestSystem } from './system/system.ts';

export function reportOf(system: GuestSystem, phase: GuestPhase): GuestReport {
  const { history, files } = system;
  const units = [...new Set([...system.enabledUnits, ...system.activeUnits])].sort();
  const services = units.map((unit) => [
    unit,
    { enabled: system.enabledUnits.has(unit), active: system.activeUnits.has(unit) },
  ]);
  return {
    phase,
    boots: system.boots,
    hostname: system.hostname,
    instanceId: system.instanceId,
    users: [...system.users.values()],
    files: files.state().files,
    packages: [...system.packages].sort(),
    services: Object.fromEntries(services),
    swapOn: system.swapOn,
    kernelModules: [...system.kernelModules].sort(),
    downloads: [...history.downloads],
    commandsRun: [...history.commandsRun],
    network: system.network.report(),
    joinAttempts: [...history.joinAttempts],
    warnings: [...history.warnings],
    errors: [...history.errors],
    cloudInitDisabled: files.exists(DISABLED_FILE),
  };
}
