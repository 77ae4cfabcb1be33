// SPDX-License-Identifier: Apache-2.0
import type { PlainRecord } from '../plain-values.ts';
import type { GuestSystem } from '../system/system.ts';

/** Modules with an effect here. */
const MODELLED = [
  'bootcmd fqdn hostname manage_etc_hosts package_update package_upgrade packages password power_state',
  'prefer_fqdn_over_hostname preserve_hostname runcmd ssh_authorized_keys swap user users write_files',
].flatMap((line) => line.split(' '));

/** Modules that exist, and change nothing that anybody could see from outside. */
const IGNORED = [
  'apt apt_pipelining byobu_by_default ca_certs chpasswd datasource disable_root final_message growpart groups',
  'keyboard locale merge_how mounts network no_ssh_fingerprints ntp output package_reboot_if_required phone_home',
  'random_seed resize_rootfs rsyslog snap ssh ssh_deletekeys ssh_genkeytypes ssh_import_id ssh_keys ssh_pwauth',
  'timezone updates vendor_data yum_repos allow_public_ssh_keys disable_ec2_metadata cloud_config_modules',
  'cloud_final_modules cloud_init_modules system_info',
].flatMap((line) => line.split(' '));

const KNOWN = new Set([...MODELLED, ...IGNORED]);

/** A key that no module reads is a warning of the schema check, not an error. */
export function warnAboutKeys(system: GuestSystem, config: PlainRecord): void {
  for (const key of Object.keys(config)) {
    if (!KNOWN.has(key)) system.warn(`cloud-config: unknown key '${key}'`);
  }
}
