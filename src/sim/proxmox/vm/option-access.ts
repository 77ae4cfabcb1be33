// SPDX-License-Identifier: Apache-2.0
// The privilege that each VM option needs, and the datacenter's rules for tags and bridges.
import { CLOUD_INIT_OPTIONS, OPTION_PRIVILEGES } from '../../../proxmox/wire-facts/index.ts';
import { ROOT_USER } from '../access/permissions.ts';
import { parameterError, permissionError, serverError } from '../api-error.ts';
import type { Core } from '../core.ts';
import { isDriveName, splitList } from '../schema/formats.ts';
import { parseProperties, propertyFields } from '../schema/property-string.ts';
import { parseNics, type VmOptions } from './drives.ts';

export interface VmCaller {
  readonly authUser: string;
  readonly id: number;
  readonly pool?: string | undefined;
}

/** Options whose check depends on their value. */
function isCheckedSeparately(name: string): boolean {
  return (
    isDriveName(name) ||
    name === 'cdrom' ||
    name === 'tags' ||
    /^(?:unused|serial|usb|hostpci|virtiofs)\d+$/.test(name)
  );
}

function findPrivilege(name: string): string | undefined {
  if (/^numa\d+$/.test(name)) return 'VM.Config.CPU';
  if (/^net\d+$/.test(name)) return 'VM.Config.Network';
  for (const [privilege, options] of Object.entries(OPTION_PRIVILEGES)) {
    if (options.includes(name)) return privilege;
  }
  return undefined;
}

function requireOption(core: Core, user: VmCaller, name: string): void {
  if (CLOUD_INIT_OPTIONS.includes(name) || /^ipconfig\d+$/.test(name)) {
    return core.access.requireVm(user.authUser, user, {
      privileges: ['VM.Config.Cloudinit', 'VM.Config.Network'],
      any: true,
    });
  }
  const privilege = findPrivilege(name);
  if (privilege === undefined) {
    if (user.authUser === ROOT_USER) return;
    throw serverError(`only root can set '${name}' config`);
  }
  core.access.requireVm(user.authUser, user, { privileges: [privilege] });
  if (name === 'startup')
    core.access.require(user.authUser, { path: '/', privileges: ['Sys.Modify'] });
}

export function requireOptionPrivileges(
  core: Core,
  user: VmCaller,
  names: readonly string[],
): void {
  if (user.authUser === ROOT_USER) return;
  for (const name of names) if (!isCheckedSeparately(name)) requireOption(core, user, name);
}

const HARDWARE = { privileges: ['VM.Config.HWType'] };

function requireSerial(core: Core, user: VmCaller, option: readonly [string, string]): void {
  const [name, value] = option;
  if (value !== 'socket') throw serverError(`only root can set '${name}' config for real devices`);
  core.access.requireVm(user.authUser, user, HARDWARE);
}

function requireMapping(core: Core, user: VmCaller, path: string): void {
  core.access.require(user.authUser, { path, privileges: ['Mapping.Use'] });
  core.access.requireVm(user.authUser, user, HARDWARE);
}

function requireUsb(core: Core, user: VmCaller, option: readonly [string, string]): void {
  const [name, value] = option;
  core.access.requireVm(user.authUser, user, HARDWARE);
  const { host, mapping } = parseProperties(propertyFields('usbN'), value);
  if (host !== undefined) {
    if (/^spice$/i.test(host)) return;
    throw serverError(`only root can set '${name}' config for real devices`);
  }
  if (mapping === undefined) throw serverError("either 'host' or 'mapping' must be set.");
  requireMapping(core, user, `/mapping/usb/${mapping}`);
}

function requirePci(core: Core, user: VmCaller, option: readonly [string, string]): void {
  const [name, value] = option;
  const { host, mapping, romfile } = parseProperties(propertyFields('pve-qm-hostpci'), value);
  if (host !== undefined)
    throw serverError(`only root can set '${name}' config for non-mapped devices`);
  if (mapping === undefined) throw serverError("either 'host' or 'mapping' must be set.");
  requireMapping(core, user, `/mapping/pci/${mapping}`);
  if (romfile !== undefined) {
    throw parameterError({ [name]: "only root@pam can set 'romfile' option" });
  }
}

function requireRandom(core: Core, user: VmCaller, option: readonly [string, string]): void {
  core.access.requireVm(user.authUser, user, HARDWARE);
  const { source } = parseProperties(propertyFields('pve-qm-rng'), option[1]);
  if (source !== '/dev/hwrng') return;
  core.access.require(user.authUser, { path: '/mapping/hwrng', privileges: ['Mapping.Use'] });
}

function requireDirectory(core: Core, user: VmCaller, option: readonly [string, string]): void {
  core.access.requireVm(user.authUser, user, { privileges: ['VM.Config.Disk'] });
  const { dirid = '' } = parseProperties(propertyFields('virtiofsN'), option[1]);
  core.access.require(user.authUser, {
    path: `/mapping/dir/${dirid}`,
    privileges: ['Mapping.Use'],
  });
}

function requireDevice(core: Core, user: VmCaller, option: readonly [string, string]): void {
  if (/^serial\d+$/.test(option[0])) requireSerial(core, user, option);
  else if (/^usb\d+$/.test(option[0])) requireUsb(core, user, option);
  else if (/^hostpci\d+$/.test(option[0])) requirePci(core, user, option);
  else if (option[0] === 'rng0') requireRandom(core, user, option);
  else if (/^virtiofs\d+$/.test(option[0])) requireDirectory(core, user, option);
}

/** Serial ports, USB and PCI devices, random number generator, shared directories. */
export function requireDevicePrivileges(core: Core, user: VmCaller, options: VmOptions): void {
  if (user.authUser === ROOT_USER) return;
  for (const option of Object.entries(options)) requireDevice(core, user, option);
}

/** Bridges outside of SDN belong to the zone `localnetwork`. */
export function requireBridgePrivileges(core: Core, authUser: string, options: VmOptions): void {
  if (authUser === ROOT_USER) return;
  for (const [, nic] of parseNics(options)) {
    const { bridge, tag, trunks = '' } = nic.options;
    if (bridge === undefined) {
      if (core.state.version === '8.4') throw serverError('no sdn vnet ID specified');
      continue;
    }
    const base = `/sdn/zones/localnetwork/${bridge}`;
    const vlans = [...(tag === undefined ? [] : [tag]), ...vlansOf(trunks)];
    const paths = vlans.length === 0 ? [base] : vlans.map((vlan) => `${base}/${vlan}`);
    for (const path of paths) core.access.require(authUser, { path, privileges: ['SDN.Use'] });
  }
}

/** `2;4-6`, sorted as text. */
function vlansOf(trunks: string): readonly string[] {
  const vlans = trunks.split(';').flatMap((part) => {
    const [from = 0, to = from] = part.split('-').map(Number);
    return part === '' ? [] : Array.from({ length: to - from + 1 }, (_, at) => String(from + at));
  });
  return [...new Set(vlans)].toSorted();
}

function allowedTags(core: Core, authUser: string): (tag: string) => boolean {
  const access = core.state.datacenter['user-tag-access'] ?? '';
  const mode = /(?:^|,)user-allow=(\w+)/.exec(access)?.[1] ?? 'free';
  const list = /(?:^|,)user-allow-list=([^,]+)/.exec(access)?.[1]?.split(';') ?? [];
  const existing = () =>
    new Set(
      [...core.state.vms.values()]
        .filter((vm) =>
          core.access.allows(authUser, { path: `/vms/${vm.id}`, privileges: ['VM.Audit'] }),
        )
        .flatMap((vm) => splitList(vm.config['tags'] ?? '')),
    );
  if (mode === 'free') return () => true;
  if (mode === 'list') return (tag) => list.includes(tag);
  if (mode === 'existing') return (tag) => list.includes(tag) || existing().has(tag);
  return () => false;
}

/** Checks added and removed tags. */
export function requireTagPrivileges(
  core: Core,
  user: VmCaller,
  change: { readonly from: string; readonly to: string },
): void {
  if (user.authUser === ROOT_USER) return;
  core.access.requireVm(user.authUser, user, { privileges: ['VM.Config.Options'] });
  if (core.access.allows(user.authUser, { path: '/', privileges: ['Sys.Modify'] })) return;
  const from = new Set(splitList(change.from));
  const to = new Set(splitList(change.to));
  const changed = [
    ...[...from].filter((tag) => !to.has(tag)),
    ...[...to].filter((tag) => !from.has(tag)),
  ];
  const registered = splitList(core.state.datacenter['registered-tags'] ?? '');
  const isAllowed = allowedTags(core, user.authUser);
  for (const tag of changed) {
    if (!registered.includes(tag) && isAllowed(tag)) continue;
    throw permissionError(`/, Sys.Modify for modifying tag '${tag}'`);
  }
}
