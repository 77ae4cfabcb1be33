// SPDX-License-Identifier: Apache-2.0

/**
 * Duration of each boot stage in milliseconds of real time; a guest divides them by its speed.
 * The values approximate a cloud image on SSD storage.
 */
export const GUEST_BOOT_DURATIONS_MS = {
  firmware: 3_000,
  netboot: 12_000,
  kernel: 5_000,
  /** Once per disk: grows the root partition and creates the SSH host keys. */
  firstBoot: 4_000,
  cloudInitLocal: 1_500,
  /** From link up to the DHCP lease. */
  dhcp: 2_000,
  cloudInitNetwork: 1_000,
  cloudInitConfig: 1_500,
  cloudInitFinal: 1_000,
  agentStart: 500,
  shutdown: 4_000,
} as const;

/** Maximum random addition to each boot duration, as a fraction of it. */
export const GUEST_BOOT_JITTER = 0.2;

/** Duration of commands in a guest, in milliseconds of real time. Commands not listed take `other`. */
export const GUEST_COMMAND_DURATIONS_MS: Readonly<Record<string, number>> = {
  'apt-get update': 4_000,
  'apt-get install': 8_000,
  'apt-get upgrade': 30_000,
  'apt update': 4_000,
  'apt install': 8_000,
  curl: 2_000,
  wget: 2_000,
  'k3s agent': 6_000,
  'rke2 agent': 12_000,
  'kubeadm join': 8_000,
  tar: 1_500,
  systemctl: 100,
  other: 10,
};
