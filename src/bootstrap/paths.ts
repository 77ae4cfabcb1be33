// SPDX-License-Identifier: Apache-2.0
// Paths of our files in a guest.

/** State of the join. Not in /run, so that a join continues after a reboot. */
export const STATE_DIRECTORY = '/var/lib/pvescaler';
export const TOKEN_FILE = `${STATE_DIRECTORY}/join-token`;
export const JOIN_SCRIPT = '/usr/local/sbin/pvescaler-join';
export const FIRST_BOOT_SCRIPT = '/usr/local/sbin/pvescaler-first-boot';
export const CUSTOM_SCRIPT = '/usr/local/sbin/pvescaler-custom-join';
export const JOIN_UNIT = 'pvescaler-join.service';
export const PROXY_FILE = '/etc/pvescaler/proxy.env';

export function unitPath(unit: string): string {
  return `/etc/systemd/system/${unit}`;
}
