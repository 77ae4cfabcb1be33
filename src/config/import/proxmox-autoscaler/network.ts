// SPDX-License-Identifier: Apache-2.0
// Addresses of machines in proxmox-autoscaler: `manual` from a range, or `dhcp`.

import type { ConfigPath } from '../../config-path.ts';
import { parseAddressRange } from '../../values/ip-address.ts';
import type { ImportContext } from '../context.ts';
import { netmaskToPrefix } from '../output/amounts.ts';
import type { SourceRef, SourceSection, SourceTree } from '../source/tree.ts';
import { readTextSetting } from './shipped-defaults.ts';

const ADDRESS_KEYS = ['pool', 'mask', 'gateway'] as const;
const ADDRESS_SETTINGS = {
  pool: 'pxe_autoscaled_node_ip_pool',
  mask: 'pxe_autoscaled_node_ip_mask',
  gateway: 'pxe_autoscaled_node_ip_gateway',
} as const;

/** Number of addresses; undefined with DHCP or without a valid range. */
export function countAddresses(
  { reader }: ImportContext,
  settings: SourceSection,
): number | undefined {
  if (reader.readText(settings.find('pxe_autoscaled_node_network_mode')) === 'dhcp')
    return undefined;
  const tree = settings.find(ADDRESS_SETTINGS.pool);
  if (tree?.kind !== 'scalar') return undefined;
  const range = parseAddressRange(String(tree.value).replaceAll(/\s/g, ''));
  return range.ok ? range.value.count : undefined;
}

export function mapNetwork(
  context: ImportContext,
  settings: SourceSection,
  pool: ConfigPath,
): void {
  const { writer } = context;
  const card = {
    where: { path: 'network card' },
    message: 'the bridge of the template, which machines used so far',
  };
  writer.setPlaceholder(
    [...pool, 'network', 'interfaces'],
    [{ model: 'virtio', bridge: 'vmbr0' }],
    card,
  );
  const mode = readTextSetting(context, settings, 'pxe_autoscaled_node_network_mode');
  const ip: ConfigPath = [...pool, 'network', 'ip'];
  if (mode.value === 'manual') mapManual(context, settings, ip);
  else mapDhcp(context, settings, ip);
  if (mode.value === 'manual' || mode.value === 'dhcp') {
    if (!mode.isShipped) noteNetworkMode(context, mode.where, mode.value);
    return;
  }
  writer.note(
    mode.where,
    'action-required',
    'is neither manual nor dhcp (in lower case), so the source system removes every new VM; dhcp was set',
  );
}

function noteNetworkMode({ writer }: ImportContext, where: SourceRef, mode: string): void {
  const form =
    mode === 'manual' ? 'a range of addresses under network.ip' : '`dhcp` under network.ip';
  writer.note(where, 'imported-differently', `became ${form}`);
}

function mapManual(context: ImportContext, settings: SourceSection, ip: ConfigPath): void {
  const { writer, reader } = context;
  const rangeTree = settings.find(ADDRESS_SETTINGS.pool);
  const range = reader.readText(rangeTree)?.replaceAll(/\s/g, '');
  if (rangeTree !== undefined && range !== undefined) writer.set([...ip, 'pool'], range, rangeTree);
  else
    writer.note(
      settings.refTo(ADDRESS_SETTINGS.pool),
      'action-required',
      'is missing; set the range of addresses, first-last',
    );
  mapMask(context, settings, ip);
  const gatewayTree = settings.find(ADDRESS_SETTINGS.gateway);
  const gateway = reader.readText(gatewayTree);
  if (gatewayTree !== undefined && gateway !== undefined)
    writer.set([...ip, 'gateway'], gateway, gatewayTree);
  else
    writer.note(
      settings.refTo(ADDRESS_SETTINGS.gateway),
      'action-required',
      'is missing; without a gateway machines reach only their own network',
    );
  mapNameServer(context, settings, ip);
}

function mapMask({ writer, reader }: ImportContext, settings: SourceSection, ip: ConfigPath): void {
  const tree = settings.find(ADDRESS_SETTINGS.mask);
  const text = reader.readText(tree);
  const prefix = text === undefined ? undefined : parsePrefix(text);
  if (tree === undefined || prefix === undefined) {
    writer.note(
      settings.refTo(ADDRESS_SETTINGS.mask),
      'action-required',
      'must be a prefix length such as 24',
    );
    return;
  }
  writer.set([...ip, 'prefix'], prefix, tree);
  noteMaskForm(writer, tree, text ?? '');
}

function parsePrefix(text: string): number | undefined {
  const digits = text.replace(/^\//, '');
  return /^\d{1,3}$/.test(digits) ? Number(digits) : netmaskToPrefix(text);
}

// The source system appends the mask to the address with `+`, which only works with text.
function noteMaskForm(writer: ImportContext['writer'], tree: SourceTree, text: string): void {
  if (tree.kind === 'scalar' && typeof tree.value === 'number') {
    writer.note(
      tree,
      'imported-differently',
      'must be text in the source system (a number makes every scale-up fail); in pvescaler it is a number',
    );
  } else if (/[./]/.test(text)) {
    writer.note(tree, 'imported-differently', 'was converted to a prefix length');
  }
}

function mapDhcp(context: ImportContext, settings: SourceSection, ip: ConfigPath): void {
  const { writer } = context;
  for (const key of ADDRESS_KEYS) {
    const tree = settings.find(ADDRESS_SETTINGS[key]);
    if (tree !== undefined) writer.note(tree, 'ignored-by-source', 'is only used in mode manual');
  }
  writer.setFixedBehavior([...ip, 'v4'], 'dhcp', 'pxe_autoscaled_node_network_mode');
  writer.setFixedBehavior([...ip, 'v6'], 'off', 'configures IPv4 only');
  mapNameServer(context, settings, ip);
}

function mapNameServer(
  { writer, reader }: ImportContext,
  settings: SourceSection,
  ip: ConfigPath,
): void {
  const tree = settings.find('pxe_autoscaled_node_dns_server');
  const servers = reader
    .readText(tree)
    ?.split(/[\s,;]+/)
    .filter((server) => server !== '');
  if (tree === undefined || servers === undefined || servers.length === 0) {
    writer.note(
      settings.refTo('pxe_autoscaled_node_dns_server'),
      'action-required',
      'is missing; machines get a name server only from DHCP',
    );
    return;
  }
  writer.set([...ip, 'dns'], servers, tree);
}
