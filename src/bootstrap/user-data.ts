// SPDX-License-Identifier: Apache-2.0
import { accepted, type Parsed } from '../model/parsed.ts';
import type { FirstBoot } from './first-boot.ts';
import { formatYaml } from './format-yaml.ts';
import { writeFilesEntry } from './guest-file.ts';
import { type CloudConfig, mergeCloudConfig, parseCloudConfig } from './merge-cloud-config.ts';
import { FIRST_BOOT_SCRIPT } from './paths.ts';
import { renderAptProxy } from './proxy.ts';
import type { LoginInput, SeedInput } from './seed-input.ts';

/** Keys are in the order in which cloud-init processes them. */
export function renderUserData(input: SeedInput, firstBoot: FirstBoot): Parsed<string> {
  const { machine, login, join } = input;
  const { files, packages, filesByAgent } = firstBoot;
  const ours: CloudConfig = {
    // cloud-init would cut the name at its first dot, and machines of a pool could get the same name.
    ...(machine.name.includes('.') && { prefer_fqdn_over_hostname: true }),
    write_files: files.map(writeFilesEntry),
    ...usersOf(login),
    ...renderAptProxy(join.proxy),
    ...(packages.length > 0 && { package_update: true, packages }),
    runcmd: [[FIRST_BOOT_SCRIPT]],
  };
  if (join.cloudConfig === undefined) return accepted(document(ours));
  const theirs = parseCloudConfig(join.cloudConfig);
  if (!theirs.ok) return theirs;
  const taken = filesByAgent.map(({ path }) => path);
  const merged = mergeCloudConfig(ours, theirs.value, taken);
  return merged.ok ? accepted(document(merged.value)) : merged;
}

function document(config: CloudConfig): string {
  return `#cloud-config\n${formatYaml(config)}`;
}

/** Without keys no user is configured: the image's own account stays locked. */
function usersOf({ user, publicKeys }: LoginInput) {
  if (publicKeys.length === 0) return {};
  const keys = publicKeys.map((key) => key.trim());
  if (user === 'root')
    return { disable_root: false, users: [{ name: 'root', ssh_authorized_keys: keys }] };
  return {
    users: [
      {
        name: user,
        sudo: 'ALL=(ALL) NOPASSWD:ALL',
        shell: '/bin/bash',
        lock_passwd: true,
        ssh_authorized_keys: keys,
      },
    ],
  };
}
