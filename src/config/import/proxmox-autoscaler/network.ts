// SPDX-License-Identifier: Apache-2.0
// Addresses of proxmox-autoscaler's machines: `manual` from a range, or `dhcp`.

import { parseAddressRange } from '../../values/address.ts';
import type { Context } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import { prefixOfNetmask } from '../ours/units.ts';
import type { Section, Tree, Where } from '../source/tree.ts';
import { textSetting } from './values.ts';

const ADDRESS_KEYS = ['pool', 'mask', 'gateway'] as const;
const KEY_OF = {
  pool: 'pxe_autoscaled_node_ip_pool',
  mask: 'pxe_autoscaled_node_ip_mask',
  gateway: 'pxe_autoscaled_node_ip_gateway',
} as const;

/** How many machines can have an address; no limit with DHCP, or while the range is unknown. */
export function addressCount({ read }: Context, settings: Section): number | undefined {
  if (read.text(settings.find('pxe_autoscaled_node_network_mode')) === 'dhcp') return undefined;
  const tree = settings.find(KEY_OF.pool);
  if (tree?.kind !== 'scalar') return undefined;
  const range = parseAddressRange(String(tree.value).replaceAll(/\s/g, ''));
  return range.ok ? range.value.count : undefined;
}

export function mapNetwork(context: Context, settings: Section, pool: DraftPath): void {
  const { work } = context;
  const card = {
    where: { path: 'network card' },
    message: 'the card of the template was used: write its bridge',
  };
  work.placeholder(
    [...pool, 'network', 'interfaces'],
    [{ model: 'virtio', bridge: 'vmbr0' }],
    card,
  );
  const mode = textSetting(context, settings, 'pxe_autoscaled_node_network_mode');
  const ip: DraftPath = [...pool, 'network', 'ip'];
  if (mode.value === 'manual') mapManual(context, settings, ip);
  else mapDhcp(context, settings, ip);
  if (mode.value === 'manual' || mode.value === 'dhcp') {
    if (!mode.isShipped) noteMode(context, mode.where, mode.value);
    return;
  }
  work.note(
    mode.where,
    'needs-you',
    'is neither manual nor dhcp (in lower case), so that every new VM is removed again there; dhcp was written',
  );
}

function noteMode({ work }: Context, where: Where, mode: string): void {
  const form =
    mode === 'manual' ? 'a range of addresses under network.ip' : '`dhcp` under network.ip';
  work.note(where, 'carried-differently', `became ${form}`);
}

function mapManual(context: Context, settings: Section, ip: DraftPath): void {
  const { work, read } = context;
  const rangeTree = settings.find(KEY_OF.pool);
  const range = read.text(rangeTree)?.replaceAll(/\s/g, '');
  if (rangeTree !== undefined && range !== undefined) work.carry([...ip, 'pool'], range, rangeTree);
  else
    work.note(
      settings.where(KEY_OF.pool),
      'needs-you',
      'is absent: write the range of addresses, first-last',
    );
  mapMask(context, settings, ip);
  const gatewayTree = settings.find(KEY_OF.gateway);
  const gateway = read.text(gatewayTree);
  if (gatewayTree !== undefined && gateway !== undefined)
    work.carry([...ip, 'gateway'], gateway, gatewayTree);
  else
    work.note(
      settings.where(KEY_OF.gateway),
      'needs-you',
      'is absent: without a gateway machines reach their own network only',
    );
  mapNameServer(context, settings, ip);
}

function mapMask({ work, read }: Context, settings: Section, ip: DraftPath): void {
  const tree = settings.find(KEY_OF.mask);
  const text = read.text(tree);
  const prefix = text === undefined ? undefined : prefixOf(text);
  if (tree === undefined || prefix === undefined) {
    work.note(settings.where(KEY_OF.mask), 'needs-you', 'is no prefix length such as 24');
    return;
  }
  work.carry([...ip, 'prefix'], prefix, tree);
  noteMaskForm(work, tree, text ?? '');
}

function prefixOf(text: string): number | undefined {
  const digits = text.replace(/^\//, '');
  return /^\d{1,3}$/.test(digits) ? Number(digits) : prefixOfNetmask(text);
}

// There the mask is put behind the address with `+`, which takes text only.
function noteMaskForm(work: Context['work'], tree: Tree, text: string): void {
  if (tree.kind === 'scalar' && typeof tree.value === 'number') {
    work.note(
      tree,
      'carried-differently',
      'must be a text there (a number makes every scale-up fail) and is a number here',
    );
  } else if (/[./]/.test(text)) {
    work.note(tree, 'carried-differently', 'is a prefix length here');
  }
}

function mapDhcp(context: Context, settings: Section, ip: DraftPath): void {
  const { work } = context;
  for (const key of ADDRESS_KEYS) {
    const tree = settings.find(KEY_OF[key]);
    if (tree !== undefined) work.note(tree, 'ignored-by-them', 'is used in the mode manual only');
  }
  work.carryFixed([...ip, 'v4'], 'dhcp', 'pxe_autoscaled_node_network_mode');
  work.carryFixed([...ip, 'v6'], 'off', 'configures IPv4 only');
  mapNameServer(context, settings, ip);
}

function mapNameServer({ work, read }: Context, settings: Section, ip: DraftPath): void {
  const tree = settings.find('pxe_autoscaled_node_dns_server');
  const servers = read
    .text(tree)
    ?.split(/[\s,;]+/)
    .filter((server) => server !== '');
  if (tree === undefined || servers === undefined || servers.length === 0) {
    work.note(
      settings.where('pxe_autoscaled_node_dns_server'),
      'needs-you',
      'is absent: machines get no name server unless DHCP gives one',
    );
    return;
  }
  work.carry([...ip, 'dns'], servers, tree);
}
