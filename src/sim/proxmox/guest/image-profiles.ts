// SPDX-License-Identifier: Apache-2.0
// What is on a disk before its first boot, told by the image's name.
import type { GuestOsInfo } from './guest-types.ts';

export interface ImageProfile {
  readonly osInfo: GuestOsInfo;
  readonly defaultUser: string;
  readonly defaultHostname: string;
  readonly packages: readonly string[];
}

const UBUNTU: ImageProfile = {
  osInfo: {
    id: 'ubuntu',
    name: 'Ubuntu',
    'pretty-name': 'Ubuntu 24.04.3 LTS',
    version: '24.04.3 LTS (Noble Numbat)',
    'version-id': '24.04',
    'kernel-release': '6.8.0-85-generic',
    'kernel-version': '#85-Ubuntu SMP PREEMPT_DYNAMIC',
    machine: 'x86_64',
  },
  defaultUser: 'ubuntu',
  defaultHostname: 'ubuntu',
  packages: ['cloud-init', 'curl', 'wget', 'openssh-server', 'sudo'],
};

const DEBIAN: ImageProfile = {
  osInfo: {
    id: 'debian',
    name: 'Debian GNU/Linux',
    'pretty-name': 'Debian GNU/Linux 13 (trixie)',
    version: '13 (trixie)',
    'version-id': '13',
    'kernel-release': '6.12.48+deb13-cloud-amd64',
    'kernel-version': '#1 SMP PREEMPT_DYNAMIC Debian 6.12.48-1',
    machine: 'x86_64',
  },
  defaultUser: 'debian',
  defaultHostname: 'localhost',
  packages: ['cloud-init', 'curl', 'wget', 'openssh-server', 'sudo'],
};

const JAMMY: ImageProfile = {
  ...UBUNTU,
  osInfo: {
    ...UBUNTU.osInfo,
    'pretty-name': 'Ubuntu 22.04.5 LTS',
    version: '22.04.5 LTS (Jammy Jellyfish)',
    'version-id': '22.04',
    'kernel-release': '5.15.0-157-generic',
    'kernel-version': '#167-Ubuntu SMP',
  },
};

/**
 * An empty disk boots from the network: the boot server's system installs itself onto the disk at the first
 * boot and starts from there later. It is made for machines, so it has the agent; it has cloud-init too, and
 * without a seed it keeps the name that it was built with.
 */
const NETBOOT: ImageProfile = {
  ...DEBIAN,
  defaultHostname: 'netboot',
  packages: [...DEBIAN.packages, 'qemu-guest-agent'],
};

/** First match wins. No public cloud image brings the guest agent; an image built with it says so in its name. */
const BY_NAME: readonly (readonly [RegExp, ImageProfile])[] = [
  [/jammy|22\.04/i, JAMMY],
  [/ubuntu|noble|24\.04/i, UBUNTU],
  [/debian|bookworm|trixie|bullseye/i, DEBIAN],
];

const NAMES_AGENT = /guest-?agent|with-?agent|qemu-ga/i;

export function profileOf(image: string | undefined): ImageProfile {
  if (image === undefined) return NETBOOT;
  const profile = BY_NAME.find(([name]) => name.test(image))?.[1] ?? UBUNTU;
  if (!NAMES_AGENT.test(image)) return profile;
  return { ...profile, packages: [...profile.packages, 'qemu-guest-agent'] };
}
