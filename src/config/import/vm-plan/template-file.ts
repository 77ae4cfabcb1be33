// SPDX-License-Identifier: Apache-2.0
// template.config.yml: the keys that provision_template.py reads, and the many keys that it ignores.

import type { ConfigPath } from '../../config-path.ts';
import type { ImportContext } from '../context.ts';
import type { SourceSection } from '../source/tree.ts';
import {
  notePassword,
  setDiskStorage,
  setPrivateKey,
  setSshUrl,
  setTemplateId,
  setUnverifiedImage,
  toEntryName,
} from './shared.ts';

/** Keys that are not read, and what happens instead. */
const IGNORED_KEYS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
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

export function mapTemplateFile(context: ImportContext, root: SourceSection): void {
  const { reader } = context;
  const sections = Object.keys(IGNORED_KEYS).map((key) => ({ key, section: root.section(key) }));
  for (const { key } of sections) reader.expectKind(root.find(key), 'map');
  const [ssh, image, vm] = sections.map(({ section }) => section);
  if (ssh !== undefined) mapSsh(context, ssh);
  if (vm !== undefined && image !== undefined) mapTemplate(context, vm, image);
  for (const { key, section } of sections) noteIgnored(context, section, IGNORED_KEYS[key] ?? {});
  for (const { section } of sections)
    reader.noteUnreadKeys(section, 'ignored-by-source', 'is not read by the source system');
  reader.noteUnreadKeys(root, 'ignored-by-source', 'is not read by the source system');
}

function mapSsh(context: ImportContext, ssh: SourceSection): void {
  setSshUrl(context, ssh, 'url');
  setPrivateKey(context, ssh, 'key_path');
  notePassword(context, ssh);
}

function mapTemplate(context: ImportContext, vm: SourceSection, image: SourceSection): void {
  const { writer, reader } = context;
  const nameTree = vm.find('name');
  const name = reader.readText(nameTree) ?? `vm-${reader.readInteger(vm.find('id')) ?? 0}`;
  const key = toEntryName(name, 'template');
  const template: ConfigPath = ['templates', key];
  if (nameTree === undefined)
    writer.setSourceDefault([...template, 'name'], name, vm.refTo('name'));
  else writer.set([...template, 'name'], name, nameTree);
  setTemplateId(context, template, vm);
  mapImage(context, image, template);
  writer.setFixedBehavior([...template, 'cpu'], 1, 'never sets the number of cores');
  writer.setFixedBehavior([...template, 'memory'], '2Gi', 'a template always has 2048 MiB');
  writer.setFixedBehavior([...template, 'bridge'], 'vmbr0', 'the card is always on vmbr0');
  setDiskStorage(context, vm, 'storage_pool');
}

function mapImage(context: ImportContext, image: SourceSection, template: ConfigPath): void {
  const { writer, reader } = context;
  const tree = image.find('url');
  const url = reader.readText(tree);
  const name = String(template.at(-1));
  if (tree !== undefined && url !== undefined) {
    writer.set(['images', name, 'url'], url, tree);
    writer.setOwn([...template, 'image'], name, '');
    setUnverifiedImage(context, name, tree);
  } else
    writer.note(
      image.refTo('url'),
      'action-required',
      'is missing; the template can be used but not built',
    );
  const local = image.find('local_path');
  if (local !== undefined)
    writer.note(local, 'not-imported', 'Proxmox downloads images itself, to storage.images');
}

function noteIgnored(
  { writer }: ImportContext,
  section: SourceSection,
  keys: Readonly<Record<string, string>>,
): void {
  for (const [key, instead] of Object.entries(keys)) {
    const tree = section.find(key);
    if (tree === undefined) continue;
    const leaves = tree.kind === 'map' ? [...tree.entries.values()] : [tree];
    for (const leaf of leaves)
      writer.note(leaf, 'ignored-by-source', `is not read by the source system: ${instead}`);
  }
}
