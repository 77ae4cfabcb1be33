// SPDX-License-Identifier: Apache-2.0
// `networkInterfaces`: KubeNodeSmith names the network cards, we number them by their position in the
// list.

import type { ConfigPath } from '../../config-path.ts';
import type { ImportContext } from '../context.ts';
import type { SourceSection, SourceTree } from '../source/tree.ts';
import type { NodePool } from './node-pool.ts';
import { readOptionItems } from './providers.ts';
import { noteUnknownKeys } from './unknown-keys.ts';

interface NetworkCard {
  readonly item: SourceTree;
  readonly section: SourceSection;
  readonly name: string;
}

/** Returns the names of the cards. VM options with the same name are overwritten. */
export function mapInterfaces({ context, root, provider }: NodePool): ReadonlySet<string> {
  const { options } = provider;
  context.reader.expectKind(options.find('networkInterfaces'), 'list');
  const cards = readOptionItems(options, 'networkInterfaces').map(({ item, section }, index) => ({
    item,
    section,
    name: readTextKey(context, section, 'name') || `net${index}`,
  }));
  const sorted = cards.toSorted((left, right) => cardNumber(left) - cardNumber(right));
  for (const [index, card] of sorted.entries()) {
    mapCard(context, card, [...root, 'network', 'interfaces', index]);
    noteCardName(context, card, index);
  }
  if (cards.length === 0) {
    const where = options.refTo('networkInterfaces');
    context.writer.note(
      where,
      'action-required',
      'is missing; in the source system a VM has no network card unless vmOptions defines one, in pvescaler it gets one on vmbr0',
    );
  }
  return new Set(cards.map(({ name }) => name));
}

function cardNumber({ name }: NetworkCard): number {
  return Number(/^net(\d+)$/.exec(name)?.[1] ?? Number.MAX_SAFE_INTEGER);
}

function readTextKey({ reader }: ImportContext, section: SourceSection, key: string): string {
  const tree = section.find(key);
  return reader.readNonNullText(tree) ?? '';
}

function noteCardName(
  { writer }: ImportContext,
  { item, section, name }: NetworkCard,
  index: number,
): void {
  const where = section.find('name') ?? item;
  if (name !== `net${index}`)
    writer.note(
      where,
      'imported-differently',
      `becomes net${index}: network cards are numbered by their position in the list`,
    );
  else if (where !== item)
    writer.note(where, 'imported-differently', 'becomes the position in the list');
}

function mapCard(context: ImportContext, { section }: NetworkCard, path: ConfigPath): void {
  const { writer, reader } = context;
  const model = readTextKey(context, section, 'model');
  if (model === '') writer.setSourceDefault([...path, 'model'], 'virtio', section.refTo('model'));
  else writer.set([...path, 'model'], model, section.refTo('model'));
  const bridge = readTextKey(context, section, 'bridge');
  if (bridge !== '') writer.set([...path, 'bridge'], bridge, section.refTo('bridge'));
  else
    writer.note(
      section.refTo('bridge'),
      'action-required',
      'is missing; in the source system the card is not connected, in pvescaler it is connected to vmbr0',
    );
  const vlanTree = section.find('vlanTag');
  const vlan = reader.readNonNullInteger(vlanTree) ?? 0;
  if (vlan > 0) writer.set([...path, 'vlan'], vlan, section.refTo('vlanTag'));
  mapMacPrefix(context, section, path);
  noteUnknownKeys(context, section, ['name', 'model', 'bridge', 'vlanTag', 'macPrefix']);
}

/** KubeNodeSmith skips invalid octets and makes the first octet unicast and locally administered. */
function mapMacPrefix(context: ImportContext, section: SourceSection, path: ConfigPath): void {
  const { writer } = context;
  const prefix = readTextKey(context, section, 'macPrefix');
  if (prefix === '') return;
  const octets = prefix
    .split(':')
    .filter((octet) => /^[\da-f]{1,2}$/i.test(octet))
    .slice(0, 5)
    .map((octet) => Number.parseInt(octet, 16));
  const [first, ...rest] = octets;
  const where = section.refTo('macPrefix');
  if (first === undefined) {
    writer.note(where, 'ignored-by-source', 'contains no valid octet');
    return;
  }
  const written = [(first & 0xfe) | 0x02, ...rest]
    .map((octet) => octet.toString(16).padStart(2, '0'))
    .join(':');
  writer.set([...path, 'macPrefix'], written, where);
  if (written !== prefix.toLowerCase()) {
    writer.note(
      where,
      'imported-differently',
      `becomes ${written}: the source system skips invalid octets and makes the first one unicast and locally administered`,
    );
  }
}
