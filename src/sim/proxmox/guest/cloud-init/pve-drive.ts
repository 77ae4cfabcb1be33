// SPDX-License-Identifier: Apache-2.0
// The cloud-init drive that Proxmox itself makes at each start, as the guest finds it: the VM's options turned
// into user-data and network data, and an instance id that changes whenever one of them does.
import type { GuestInterfaceInput } from '../guest-types.ts';
import type { PlainRecord } from '../plain-values.ts';
import { sha256Hex } from '../system/sha256.ts';
import type { Seed } from './seed.ts';

type DriveOptions = Readonly<Record<string, string>>;

export function seedFromDrive(
  options: DriveOptions,
  interfaces: readonly GuestInterfaceInput[],
): Seed {
  const config = userConfig(options);
  const networkConfig = { version: 1, config: networkEntries(options, interfaces) };
  // JSON is YAML: the documents are ours on both sides, only their meaning is Proxmox's.
  const userData = new TextEncoder().encode(`#cloud-config\n${JSON.stringify(config)}\n`);
  const digest = sha256Hex(new TextEncoder().encode(JSON.stringify([config, networkConfig])));
  return {
    instanceId: digest.slice(0, 40),
    metaData: {},
    userData,
    vendorData: new Uint8Array(),
    networkConfig,
  };
}

function userConfig(options: DriveOptions): PlainRecord {
  const { ciuser, cipassword, sshkeys, name, searchdomain } = options;
  const hostname = name ?? 'localhost';
  return {
    hostname,
    manage_etc_hosts: true,
    ...(searchdomain ? { fqdn: `${hostname}.${searchdomain.split(' ')[0]}` } : {}),
    ...(ciuser ? { user: ciuser } : {}),
    ...(cipassword ? { password: cipassword } : {}),
    ...(sshkeys ? { ssh_authorized_keys: keysOf(sshkeys) } : {}),
    chpasswd: { expire: false },
    users: ['default'],
    ...(options['ciupgrade'] === '0' ? {} : { package_upgrade: true }),
  };
}

function keysOf(encoded: string): string[] {
  const lines = decoded(encoded).split('\n');
  return lines.map((line) => line.trim()).filter((line) => line !== '');
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A card without `ipconfigN` is not mentioned, and stays down. */
function networkEntries(
  options: DriveOptions,
  interfaces: readonly GuestInterfaceInput[],
): PlainRecord[] {
  const entries: PlainRecord[] = [];
  for (const { slot, mac } of interfaces) {
    const index = slot.replace(/^net/, '');
    const ipconfig = options[`ipconfig${index}`];
    if (ipconfig === undefined) continue;
    const name = `eth${index}`;
    entries.push({
      type: 'physical',
      name,
      mac_address: mac.toLowerCase(),
      subnets: subnets(ipconfig),
    });
  }
  const { nameserver, searchdomain } = options;
  if (nameserver || searchdomain) {
    entries.push({ type: 'nameserver', address: words(nameserver), search: words(searchdomain) });
  }
  return entries;
}

function subnets(ipconfig: string): PlainRecord[] {
  const part = (key: string) =>
    ipconfig
      .split(',')
      .find((pair) => pair.startsWith(`${key}=`))
      ?.slice(key.length + 1);
  const [ip, gw, ip6, gw6] = [part('ip'), part('gw'), part('ip6'), part('gw6')];
  const found: PlainRecord[] = [];
  if (ip === 'dhcp') found.push({ type: 'dhcp4' });
  else if (ip) found.push({ type: 'static', address: ip, ...(gw ? { gateway: gw } : {}) });
  if (ip6 && ip6 !== 'dhcp' && ip6 !== 'auto') {
    found.push({ type: 'static6', address: ip6, ...(gw6 ? { gateway: gw6 } : {}) });
  }
  return found;
}

function words(text: string | undefined): string[] {
  return (text ?? '').split(/[\s,;]+/).filter((word) => word !== '');
}
