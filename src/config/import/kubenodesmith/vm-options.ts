// SPDX-License-Identifier: Apache-2.0
// The remaining raw VM options: some have their own key here, some are passed through, some are refused.

import { checkVmOption } from '../../schema/vm-options.ts';
import { formatMiB } from '../output/amounts.ts';
import type { NodePool, VmOption } from './node-pool.ts';

interface OptionWithCards {
  readonly option: VmOption;
  readonly cards: ReadonlySet<string>;
}

type OptionMapper = (pool: NodePool, option: VmOption) => void;

/** Options that have their own key in our config. */
const OPTION_MAPPERS: Readonly<Record<string, OptionMapper>> = {
  // Already mapped: the disk and the boot source.
  scsi0: () => {},
  boot: () => {},
  ipconfig0: mapIpConfig,
  ide2: (pool, option) => {
    const isCloudInit = /:cloudinit\b/.test(option.text);
    pool.context.writer.note(
      option.tree,
      isCloudInit ? 'imported-differently' : 'action-required',
      isCloudInit
        ? 'pvescaler creates the cloud-init drive itself when the VM source needs one'
        : 'booting from a CD is not supported; use netboot, an image or a template',
    );
  },
  cicustom: (pool, option) => {
    pool.context.writer.note(
      option.tree,
      'action-required',
      'refers to snippets on a host, which cannot be read; set join.custom.cloudConfigFile to the cloud-config',
    );
  },
  cipassword: (pool, option) => {
    pool.context.writer.note(
      option.tree,
      'not-imported',
      'guest passwords are not supported; use ssh.publicKeys',
    );
  },
  tags: mapTags,
  balloon: (pool, option) => {
    const mib = parseDecimal(option.text);
    if (mib === undefined)
      pool.context.writer.note(option.tree, 'not-imported', 'is not a number of MiB');
    else pool.context.writer.set([...pool.root, 'balloon'], formatMiB(mib), option.tree);
  },
  onboot: (pool, option) => {
    pool.context.writer.set(
      [...pool.root, 'onboot'],
      /^(?:1|true|yes|on)$/i.test(option.text),
      option.tree,
    );
  },
  pool: (pool, option) => {
    pool.context.writer.set(
      ['proxmox', pool.provider.region, 'resourcePool'],
      option.text,
      option.tree,
    );
  },
  ciuser: (pool, option) => {
    pool.context.writer.set(['ssh', 'user'], option.text, option.tree);
  },
};

const OVERWRITTEN: ReadonlySet<string> = new Set(['name', 'memory', 'cores']);

export function mapVmOption(pool: NodePool, { option, cards }: OptionWithCards): void {
  const { writer } = pool.context;
  const { name, text, tree } = option;
  if (OVERWRITTEN.has(name) || cards.has(name)) {
    writer.note(
      tree,
      'ignored-by-source',
      'is overwritten by a value that the source system sets itself',
    );
    return;
  }
  const mapper = Object.hasOwn(OPTION_MAPPERS, name) ? OPTION_MAPPERS[name] : undefined;
  if (mapper !== undefined) {
    mapper(pool, option);
    return;
  }
  const value = parseDecimal(text) ?? text;
  const checked = checkVmOption(name, value);
  if (checked.ok) writer.set([...pool.root, 'vmOptions', name], value, tree);
  else writer.note(tree, 'not-imported', checked.problem);
}

function mapIpConfig({ context, root }: NodePool, option: VmOption): void {
  const parts = option.text.split(',').map((part) => part.trim());
  const hasStatic = parts.some((part) => /^ip6?=/.test(part) && !/^ip6?=(?:dhcp|auto)$/.test(part));
  if (!hasStatic && parts.includes('ip=dhcp')) {
    context.writer.set([...root, 'network', 'ip'], 'dhcp', option.tree);
    return;
  }
  context.writer.note(
    option.tree,
    'action-required',
    'would give every machine the same address; set network.ip to a range of addresses',
  );
}

/**
 * KubeNodeSmith versions that set managedNodeTag on VMs overwrite a `tags` option. In earlier versions the
 * option was used.
 */
function mapTags({ context, provider }: NodePool, option: VmOption): void {
  const tags = splitTags(option.text);
  if (tags.length > 0) context.writer.set(['proxmox', provider.region, 'tags'], tags, option.tree);
  context.writer.note(
    option.tree,
    'imported-differently',
    'later versions of the source system overwrite it with managedNodeTag; in pvescaler machines have both',
  );
}

/** A non-negative whole number; undefined for any other text. */
function parseDecimal(text: string): number | undefined {
  return /^(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : undefined;
}

/** Proxmox splits tags at semicolons, commas and blanks and stores them in lower case. */
function splitTags(text: string): readonly string[] {
  return [...new Set(text.toLowerCase().split(/[;,\s]+/))].filter((tag) => tag !== '');
}
