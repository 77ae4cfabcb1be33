// SPDX-License-Identifier: Apache-2.0
// The content of a disk before its first boot, selected by the image name.
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
 * An empty disk boots from the network: the netboot image installs itself onto the disk at the first boot and
 * starts from the disk afterwards. It includes the guest agent and cloud-init. Without a seed it keeps its built-in
 * hostname.
 */
const NETBOOT: ImageProfile = {
  ...DEBIAN,
  defaultHostname: 'netboot',
  packages: [...DEBIAN.packages, 'qemu-guest-agent'],
};

/** First match wins. Public cloud images do not include the guest agent; images with it have it in their name. */
const PROFILES_BY_NAME: readonly (readonly [RegExp, ImageProfile])[] = [
  [/jammy|22\.04/i, JAMMY],
  [/ubuntu|noble|24\.04/i, UBUNTU],
  [/debian|bookworm|trixie|bullseye/i, DEBIAN],
];

const HAS_AGENT = /guest-?agent|with-?agent|qemu-ga/i;

export function selectImageProfile(image: string | undefined): ImageProfile {
  if (image === undefined) return NETBOOT;
  const profile = PROFILES_BY_NAME.find(([name]) => name.test(image))?.[1] ?? UBUNTU;
  if (!HAS_AGENT.test(image)) return profile;
  return { ...profile, packages: [...profile.packages, 'qemu-guest-agent'] };
}
