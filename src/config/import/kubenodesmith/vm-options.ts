// SPDX-License-Identifier: Apache-2.0
// The remaining raw options of a VM: some have a key of their own here, some are passed on, some are refused.

import { checkVmOption } from '../../schema/vm-options.ts';
import { fromMiB } from '../ours/units.ts';
import type { Option } from './option.ts';
import { splitTags, wholeNumber } from './option-text.ts';
import type { Pool } from './pool.ts';

interface Entry {
  readonly option: Option;
  readonly cards: ReadonlySet<string>;
}

type Home = (pool: Pool, option: Option) => void;

/** Options with a home of their own. */
const HOMES: Readonly<Record<string, Home>> = {
  // Handled before: the disk, and what the VM boots from.
  scsi0: () => {},
  boot: () => {},
  ipconfig0: mapIpConfig,
  ide2: (pool, option) => {
    const isCloudInit = /:cloudinit\b/.test(option.text);
    pool.context.work.note(
      option.tree,
      isCloudInit ? 'carried-differently' : 'needs-you',
      isCloudInit
        ? 'the drive with the settings of a machine is made by pvescaler itself, where the source of a VM needs one'
        : 'a CD that machines boot from has no home here: use netboot, an image or a template',
    );
  },
  cicustom: (pool, option) => {
    pool.context.work.note(
      option.tree,
      'needs-you',
      'names snippets on a host, which cannot be read from here: give the cloud-config as join.custom.cloudConfigFile',
    );
  },
  cipassword: (pool, option) => {
    pool.context.work.note(
      option.tree,
      'not-carried',
      'a password for the guest has no home here: use ssh.publicKeys',
    );
  },
  tags: mapTags,
  balloon: (pool, option) => {
    const mib = wholeNumber(option.text);
    if (mib === undefined)
      pool.context.work.note(option.tree, 'not-carried', 'is not a number of MiB');
    else pool.context.work.carry([...pool.root, 'balloon'], fromMiB(mib), option.tree);
  },
  onboot: (pool, option) => {
    pool.context.work.carry(
      [...pool.root, 'onboot'],
      /^(?:1|true|yes|on)$/i.test(option.text),
      option.tree,
    );
  },
  pool: (pool, option) => {
    pool.context.work.carry(
      ['proxmox', pool.provider.region, 'resourcePool'],
      option.text,
      option.tree,
    );
  },
  ciuser: (pool, option) => {
    pool.context.work.carry(['ssh', 'user'], option.text, option.tree);
  },
};

const OVERWRITTEN: ReadonlySet<string> = new Set(['name', 'memory', 'cores']);

export function mapOption(pool: Pool, { option, cards }: Entry): void {
  const { work } = pool.context;
  const { name, text, tree } = option;
  if (OVERWRITTEN.has(name) || cards.has(name)) {
    work.note(tree, 'ignored-by-them', 'is overwritten by what the program sets itself');
    return;
  }
  const home = Object.hasOwn(HOMES, name) ? HOMES[name] : undefined;
  if (home !== undefined) {
    home(pool, option);
    return;
  }
  const value = wholeNumber(text) ?? text;
  const checked = checkVmOption(name, value);
  if (checked.ok) work.carry([...pool.root, 'vmOptions', name], value, tree);
  else work.note(tree, 'not-carried', checked.problem);
}

function mapIpConfig({ context, root }: Pool, option: Option): void {
  const parts = option.text.split(',').map((part) => part.trim());
  const hasStatic = parts.some((part) => /^ip6?=/.test(part) && !/^ip6?=(?:dhcp|auto)$/.test(part));
  if (!hasStatic && parts.includes('ip=dhcp')) {
    context.work.carry([...root, 'network', 'ip'], 'dhcp', option.tree);
    return;
  }
  context.work.note(
    option.tree,
    'needs-you',
    'would give every machine the same address: write a range of addresses to network.ip',
  );
}

/** Since managedNodeTag is put on VMs, a `tags` option is overwritten by it; before, it was the only way. */
function mapTags({ context, provider }: Pool, option: Option): void {
  const tags = splitTags(option.text);
  if (tags.length > 0) context.work.carry(['proxmox', provider.region, 'tags'], tags, option.tree);
  context.work.note(
    option.tree,
    'carried-differently',
    'later versions there overwrite it with managedNodeTag; here machines have both',
  );
}
