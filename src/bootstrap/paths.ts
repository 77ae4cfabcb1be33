// SPDX-License-Identifier: Apache-2.0
// Where our things are in a guest.

/** What the join remembers. Not /run: a machine that restarts in the middle of its join goes on. */
export const STATE = '/var/lib/pvescaler';
export const TOKEN_FILE = `${STATE}/join-token`;
export const JOIN_SCRIPT = '/usr/local/sbin/pvescaler-join';
export const FIRST_BOOT_SCRIPT = '/usr/local/sbin/pvescaler-first-boot';
export const CUSTOM_SCRIPT = '/usr/local/sbin/pvescaler-custom-join';
export const JOIN_UNIT = 'pvescaler-join.service';
export const PROXY_FILE = '/etc/pvescaler/proxy.env';

export function unitPath(unit: string): string {
  return `/etc/systemd/system/${unit}`;
}
