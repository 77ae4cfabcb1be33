// SPDX-License-Identifier: Apache-2.0

/**
 * How long each part of a boot takes, in milliseconds of a real machine; a guest divides by its speed.
 * Orders of magnitude of a cloud image on SSD storage; the jitter (a share of each) comes from the Random port.
 */
export const GUEST_BOOT_DURATIONS = {
  firmware: 3_000,
  netboot: 12_000,
  kernel: 5_000,
  /** Once per disk: growing the root partition, ssh host keys. */
  firstBoot: 4_000,
  cloudInitLocal: 1_500,
  /** From the link to the DHCP lease. */
  dhcp: 2_000,
  cloudInitNetwork: 1_000,
  cloudInitConfig: 1_500,
  cloudInitFinal: 1_000,
  agentStart: 500,
  shutdown: 4_000,
  /** The share of each duration that is added at random. */
  jitter: 0.2,
} as const;

/** How long commands take in a guest; everything not named takes `other`. */
export const GUEST_COMMAND_DURATIONS: Readonly<Record<string, number>> = {
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
