// SPDX-License-Identifier: Apache-2.0
import { accepted, type Parsed } from '../model/parsed.ts';
import type { FirstBoot } from './first-boot.ts';
import { writeFilesEntry } from './guest-file.ts';
import { type CloudConfig, mergeCloudConfig, parseCloudConfig } from './merge-cloud-config.ts';
import { FIRST_BOOT_SCRIPT } from './paths.ts';
import { aptProxy } from './proxy.ts';
import type { LoginInput, SeedInput } from './seed-input.ts';
import { yamlText } from './yaml-text.ts';

/** Keys in the order in which cloud-init acts on them. */
export function userDataOf(input: SeedInput, firstBoot: FirstBoot): Parsed<string> {
  const { machine, login, join } = input;
  const { files, packages, filesByAgent } = firstBoot;
  const ours: CloudConfig = {
    // cloud-init would cut a name at its first dot, and all machines of a pool could be called the same.
    ...(machine.name.includes('.') && { prefer_fqdn_over_hostname: true }),
    write_files: files.map(writeFilesEntry),
    ...usersOf(login),
    ...aptProxy(join.proxy),
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
  return `#cloud-config\n${yamlText(config)}`;
}

/** Without keys there is nobody to let in: the image's own account stays as it is, locked. */
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
