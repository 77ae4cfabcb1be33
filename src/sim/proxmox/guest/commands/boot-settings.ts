// SPDX-License-Identifier: Apache-2.0
import type { GuestSystem } from '../system/system.ts';

/** Applies the files that systemd-sysctl and systemd-modules-load read at each boot. */
export function applyBootSettings(system: GuestSystem): void {
  const paths = system.files.paths();
  for (const path of paths.filter((each) => SYSCTL_FILES.test(each))) loadSysctl(system, path);
  for (const path of paths.filter((each) => MODULE_FILES.test(each))) {
    for (const line of (system.files.read(path) ?? '').split('\n')) {
      const name = line.trim();
      if (name !== '' && !name.startsWith('#')) system.kernelModules.add(name);
    }
  }
}

export const SYSCTL_FILES = /^\/etc\/sysctl(\.d\/.*)?\.conf$/;
const MODULE_FILES = /^\/etc\/modules-load\.d\/.*\.conf$/;

export function loadSysctl(system: GuestSystem, path: string): void {
  for (const line of (system.files.read(path) ?? '').split('\n')) {
    const match = /^\s*([\w./-]+)\s*=\s*(.*?)\s*$/.exec(line);
    if (match !== null) system.sysctl.set((match[1] ?? '').replaceAll('/', '.'), match[2] ?? '');
  }
}
