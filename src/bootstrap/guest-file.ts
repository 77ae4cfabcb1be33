// SPDX-License-Identifier: Apache-2.0

/** A file that is written into the guest before it joins. */
export interface GuestFile {
  readonly path: string;
  readonly content: string;
  /** Octal, four digits. */
  readonly mode: string;
}

/** Contains a join secret: readable by root only, and removed after the join. */
export function secretFile(path: string, content: string): GuestFile {
  return { path, content, mode: '0600' };
}

/** Characters that YAML preserves. Others, such as carriage returns and control characters, need base64. */
const TEXT = /^[\t\n\x20-\x7e\u00a1-\u1fff\u2030-\u2fff\u3001-\ud7ff]*$/;

/** An entry of cloud-init's `write_files`. */
export function writeFilesEntry({ path, content, mode }: GuestFile) {
  const encoded = TEXT.test(content)
    ? { content }
    : { encoding: 'b64', content: base64(new TextEncoder().encode(content)) };
  return { path, permissions: mode, ...encoded };
}

function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

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

export function joinLines(...texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join('');
}
