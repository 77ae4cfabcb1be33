// SPDX-License-Identifier: Apache-2.0
// template.config.yml: what provision_template.py reads, and the many keys that it does not.

import type { Context } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import type { Section } from '../source/tree.ts';
import {
  carryDisks,
  carryPrivateKey,
  carrySshUrl,
  carryTemplateId,
  carryUnverifiedImage,
  givenName,
  notePassword,
} from './shared.ts';

/** Keys that stand in the file and are not read, with what happens instead. */
const IGNORED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ssh: {
    host: 'only url is read',
    username: 'only url is read',
    port: 'only url is read',
  },
  image: { download: 'the image is always downloaded' },
  vm: {
    memory_mb: 'a template always has 2048 MiB',
    cores: 'the number of cores is never set',
    network: 'the card is always virtio on vmbr0',
    scsihw: 'it is always virtio-scsi-pci',
    scsi_device: 'the disk is always scsi0',
    cloudinit: 'the cloud-init drive is always ide2',
    boot: 'the boot order is fixed',
    serial: 'the serial console is fixed',
    vga: 'the display is fixed',
  },
  cleanup: { remove_local_image: 'the image is never removed' },
  force: {
    destroy_existing: 'only the flag --force counts',
    destroy_options: 'the options are fixed',
  },
};

export function mapTemplateFile(context: Context, root: Section): void {
  const { read } = context;
  const sections = Object.keys(IGNORED).map((key) => ({ key, section: root.section(key) }));
  for (const { key } of sections) read.expect(root.find(key), 'map');
  const [ssh, image, vm] = sections.map(({ section }) => section);
  if (ssh !== undefined) mapSsh(context, ssh);
  if (vm !== undefined && image !== undefined) mapTemplate(context, vm, image);
  for (const { key, section } of sections) noteIgnored(context, section, IGNORED[key] ?? {});
  for (const { section } of sections) read.unknown(section, 'ignored-by-them', 'is not read');
  read.unknown(root, 'ignored-by-them', 'is not read');
}

function mapSsh(context: Context, ssh: Section): void {
  carrySshUrl(context, ssh, 'url');
  carryPrivateKey(context, ssh, 'key_path');
  notePassword(context, ssh);
}

function mapTemplate(context: Context, vm: Section, image: Section): void {
  const { work, read } = context;
  const nameTree = vm.find('name');
  const name = read.text(nameTree) ?? `vm-${read.integer(vm.find('id')) ?? 0}`;
  const key = givenName(name, 'template');
  const template: DraftPath = ['templates', key];
  if (nameTree === undefined) work.carryDefault([...template, 'name'], name, vm.where('name'));
  else work.carry([...template, 'name'], name, nameTree);
  carryTemplateId(context, template, vm);
  mapImage(context, image, template);
  work.carryFixed([...template, 'cpu'], 1, 'never sets the number of cores');
  work.carryFixed([...template, 'memory'], '2Gi', 'a template always has 2048 MiB');
  work.carryFixed([...template, 'bridge'], 'vmbr0', 'the card is always on vmbr0');
  carryDisks(context, vm, 'storage_pool');
}

function mapImage(context: Context, image: Section, template: DraftPath): void {
  const { work, read } = context;
  const tree = image.find('url');
  const url = read.text(tree);
  const name = String(template.at(-1));
  if (tree !== undefined && url !== undefined) {
    work.carry(['images', name, 'url'], url, tree);
    work.carryOwn([...template, 'image'], name, '');
    carryUnverifiedImage(context, name, tree);
  } else
    work.note(
      image.where('url'),
      'needs-you',
      'is absent: the template can be used, but not built',
    );
  const local = image.find('local_path');
  if (local !== undefined)
    work.note(local, 'not-carried', 'Proxmox downloads images itself, to storage.images');
}

function noteIgnored(
  { work }: Context,
  section: Section,
  keys: Readonly<Record<string, string>>,
): void {
  for (const [key, instead] of Object.entries(keys)) {
    const tree = section.find(key);
    if (tree === undefined) continue;
    const leaves = tree.kind === 'map' ? [...tree.entries.values()] : [tree];
    for (const leaf of leaves) work.note(leaf, 'ignored-by-them', `is not read: ${instead}`);
  }
}
