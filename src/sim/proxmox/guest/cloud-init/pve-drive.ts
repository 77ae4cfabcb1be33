// SPDX-License-Identifier: Apache-2.0
// The cloud-init drive that Proxmox creates at each VM start: user-data and network data from the VM's options. The
// instance id changes with every change of an option.
import type { GuestInterfaceInput } from '../guest-types.ts';
import { sha256Hex } from '../system/sha256.ts';
import type { PlainRecord } from '../untyped-values.ts';
import type { Seed } from './seed.ts';

type DriveOptions = Readonly<Record<string, string>>;

export function buildSeedFromDrive(
  options: DriveOptions,
  interfaces: readonly GuestInterfaceInput[],
): Seed {
  const config = buildUserConfig(options);
  const networkConfig = { version: 1, config: buildNetworkEntries(options, interfaces) };
  // JSON is valid YAML.
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

function buildUserConfig(options: DriveOptions): PlainRecord {
  const { ciuser, cipassword, sshkeys, name, searchdomain } = options;
  const hostname = name ?? 'localhost';
  return {
    hostname,
    manage_etc_hosts: true,
    ...(searchdomain ? { fqdn: `${hostname}.${searchdomain.split(' ')[0]}` } : {}),
    ...(ciuser ? { user: ciuser } : {}),
    ...(cipassword ? { password: cipassword } : {}),
    ...(sshkeys ? { ssh_authorized_keys: decodeSshKeys(sshkeys) } : {}),
    chpasswd: { expire: false },
    users: ['default'],
    ...(options['ciupgrade'] === '0' ? {} : { package_upgrade: true }),
  };
}

function decodeSshKeys(encoded: string): string[] {
  const lines = decodeUri(encoded).split('\n');
  return lines.map((line) => line.trim()).filter((line) => line !== '');
}

function decodeUri(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A card without `ipconfigN` gets no entry and stays down. */
function buildNetworkEntries(
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
      subnets: parseIpConfig(ipconfig),
    });
  }
  const { nameserver, searchdomain } = options;
  if (nameserver || searchdomain) {
    entries.push({
      type: 'nameserver',
      address: splitWords(nameserver),
      search: splitWords(searchdomain),
    });
  }
  return entries;
}

function parseIpConfig(ipconfig: string): PlainRecord[] {
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

function splitWords(text: string | undefined): string[] {
  return (text ?? '').split(/[\s,;]+/).filter((word) => word !== '');
}
