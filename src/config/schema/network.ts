// SPDX-License-Identifier: Apache-2.0
// Network cards and IP addresses of a machine.
import * as z from 'zod';
import { addressRange, ipAddress, macPrefix } from './address-leaves.ts';
import { wholeNumber } from './amount-leaves.ts';
import { form, key, section } from './key.ts';
import { bridge, dnsName } from './name-leaves.ts';

export const interfaceSchema = z.strictObject({
  model: key(
    z.enum(['virtio', 'e1000', 'e1000e', 'rtl8139', 'vmxnet3']).prefault('virtio'),
    'Network card model.',
    {
      replaces: { kubenodesmith: 'providers.NAME.options.networkInterfaces[].model' },
    },
  ),
  bridge: key(bridge().prefault('vmbr0'), 'Bridge or VNet on the host.', {
    replaces: {
      externalgrpc: 'proxmox.bridge',
      'vm-plan': 'vm_template.network_bridge',
      kubenodesmith: 'providers.NAME.options.networkInterfaces[].bridge',
    },
  }),
  vlan: key(wholeNumber(1, 4094).optional(), 'VLAN tag.', {
    defaultText: 'untagged',
    replaces: { kubenodesmith: 'providers.NAME.options.networkInterfaces[].vlanTag' },
  }),
  mtu: key(wholeNumber(1, 65_520).optional(), 'MTU; 1 uses the MTU of the bridge. virtio only.', {
    defaultText: 'the Proxmox default',
  }),
  queues: key(
    wholeNumber(0, 64).prefault(0),
    'Number of packet queues; 0 uses the Proxmox default.',
  ),
  macPrefix: key(
    macPrefix().optional(),
    'First octets of the MAC address; the remaining ones are random.',
    {
      defaultText: 'the MAC prefix of the Proxmox datacenter',
      replaces: { kubenodesmith: 'providers.NAME.options.networkInterfaces[].macPrefix' },
      note: 'an invalid octet is an error here; KubeNodeSmith skipped it',
    },
  ),
  firewall: key(z.boolean().prefault(false), 'Enable the Proxmox firewall on the card.'),
});

function addressRanges() {
  return z
    .union([addressRange(), z.array(addressRange()).min(1)])
    .meta({ 'x-forms': "a range such as '10.0.0.11-10.0.0.19', or a list of ranges" });
}

const nameServerKeys = {
  dns: key(z.array(ipAddress()).prefault([]), 'Name servers.', {
    replaces: { 'proxmox-autoscaler': 'pxe_autoscaled_node_dns_server' },
  }),
  search: key(z.array(dnsName()).prefault([]), 'Search domains.'),
};

const staticKeys = {
  pool: key(
    addressRanges(),
    'Range of addresses to assign, both ends included; or a list of ranges.',
    {
      replaces: { 'proxmox-autoscaler': 'pxe_autoscaled_node_ip_pool' },
      examples: ['10.10.10.11-10.10.10.19'],
    },
  ),
  prefix: key(wholeNumber(1, 128), 'Prefix length of the subnet.', {
    replaces: { 'proxmox-autoscaler': 'pxe_autoscaled_node_ip_mask' },
  }),
  gateway: key(ipAddress().optional(), 'Default gateway.', {
    defaultText: 'none',
    replaces: { 'proxmox-autoscaler': 'pxe_autoscaled_node_ip_gateway' },
  }),
};

const v4Schema = z
  .union([z.enum(['dhcp', 'off']), z.strictObject(staticKeys)])
  .prefault('dhcp')
  .meta({ 'x-forms': '`dhcp`, `off`, or a mapping with pool, prefix and gateway' });

const v6Schema = z
  .union([z.enum(['auto', 'dhcp', 'off']), z.strictObject(staticKeys)])
  .prefault('auto')
  .meta({ 'x-forms': '`auto`, `dhcp`, `off`, or a mapping with pool, prefix and gateway' });

const ipSchema = z
  .union([
    z.literal('dhcp'),
    form(z.strictObject({ ...staticKeys, ...nameServerKeys })),
    form(
      z.strictObject({
        v4: key(v4Schema, 'IPv4: `dhcp`, `off` or a static pool.'),
        v6: key(v6Schema, 'IPv6: `auto` (router advertisements), `dhcp`, `off` or a static pool.'),
        ...nameServerKeys,
      }),
    ),
  ])
  .prefault('dhcp')
  .meta({
    'x-forms': '`dhcp`, a mapping with pool, prefix and gateway, or a mapping with v4 and v6',
  });

export const networkSchema = section({
  interfaces: key(
    z.array(interfaceSchema).min(1).max(32).prefault([{}]),
    'Network cards, starting with `net0`. Static addresses are assigned to the first card.',
    {
      replaces: { kubenodesmith: 'providers.NAME.options.networkInterfaces' },
      note: 'cards are numbered by their position in the list',
    },
  ),
  ip: key(ipSchema, 'How machines get their IP addresses.', {
    replaces: { 'proxmox-autoscaler': 'pxe_autoscaled_node_network_mode' },
    note: '`manual` in proxmox-autoscaler is a static pool here',
  }),
});
