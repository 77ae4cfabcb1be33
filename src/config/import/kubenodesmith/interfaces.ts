// SPDX-License-Identifier: Apache-2.0
// `networkInterfaces`: cards by name there, by their place in the list here.

import type { Context } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import { isNull } from '../source/reader.ts';
import type { Section, Tree } from '../source/tree.ts';
import type { Pool } from './pool.ts';
import { optionItems } from './providers.ts';
import { noteUnknown } from './strict.ts';

interface Card {
  readonly item: Tree;
  readonly section: Section;
  readonly name: string;
}

/** The names of the cards: options of the same name are overwritten by them. */
export function mapInterfaces({ context, root, provider }: Pool): ReadonlySet<string> {
  const { options } = provider;
  context.read.expect(options.find('networkInterfaces'), 'list');
  const cards = optionItems(options, 'networkInterfaces').map(({ item, section }, index) => ({
    item,
    section,
    name: textOf(context, section, 'name') || `net${index}`,
  }));
  const sorted = cards.toSorted((left, right) => numberOf(left) - numberOf(right));
  for (const [index, card] of sorted.entries()) {
    mapCard(context, card, [...root, 'network', 'interfaces', index]);
    noteName(context, card, index);
  }
  if (cards.length === 0) {
    const where = options.where('networkInterfaces');
    context.work.note(
      where,
      'needs-you',
      'is absent: a VM has no card there unless vmOptions has one; here it gets one on vmbr0',
    );
  }
  return new Set(cards.map(({ name }) => name));
}

function numberOf({ name }: Card): number {
  return Number(/^net(\d+)$/.exec(name)?.[1] ?? Number.MAX_SAFE_INTEGER);
}

function textOf({ read }: Context, section: Section, key: string): string {
  const tree = section.find(key);
  return tree === undefined || isNull(tree) ? '' : (read.text(tree) ?? '');
}

function noteName({ work }: Context, { item, section, name }: Card, index: number): void {
  const where = section.find('name') ?? item;
  if (name !== `net${index}`)
    work.note(
      where,
      'carried-differently',
      `is net${index} here: cards are numbered by their place in the list`,
    );
  else if (where !== item) work.note(where, 'carried-differently', 'is the place in the list here');
}

function mapCard(context: Context, { section }: Card, path: DraftPath): void {
  const { work, read } = context;
  const model = textOf(context, section, 'model');
  if (model === '') work.carryDefault([...path, 'model'], 'virtio', section.where('model'));
  else work.carry([...path, 'model'], model, section.where('model'));
  const bridge = textOf(context, section, 'bridge');
  if (bridge !== '') work.carry([...path, 'bridge'], bridge, section.where('bridge'));
  else
    work.note(
      section.where('bridge'),
      'needs-you',
      'is absent: the card is connected to nothing there, to vmbr0 here',
    );
  const vlanTree = section.find('vlanTag');
  const vlan = vlanTree === undefined || isNull(vlanTree) ? 0 : (read.integer(vlanTree) ?? 0);
  if (vlan > 0) work.carry([...path, 'vlan'], vlan, section.where('vlanTag'));
  mapMacPrefix(context, section, path);
  noteUnknown(context, section, ['name', 'model', 'bridge', 'vlanTag', 'macPrefix']);
}

/** There, wrong octets are skipped and the first one is made unicast and locally administered. */
function mapMacPrefix(context: Context, section: Section, path: DraftPath): void {
  const { work } = context;
  const prefix = textOf(context, section, 'macPrefix');
  if (prefix === '') return;
  const octets = prefix
    .split(':')
    .filter((octet) => /^[\da-f]{1,2}$/i.test(octet))
    .slice(0, 5)
    .map((octet) => Number.parseInt(octet, 16));
  const [first, ...rest] = octets;
  const where = section.where('macPrefix');
  if (first === undefined) {
    work.note(where, 'ignored-by-them', 'has no octet that can be used');
    return;
  }
  const written = [(first & 0xfe) | 0x02, ...rest]
    .map((octet) => octet.toString(16).padStart(2, '0'))
    .join(':');
  work.carry([...path, 'macPrefix'], written, where);
  if (written !== prefix.toLowerCase()) {
    work.note(
      where,
      'carried-differently',
      `is ${written} in effect: wrong octets are skipped, and the first one is made unicast and locally administered`,
    );
  }
}
