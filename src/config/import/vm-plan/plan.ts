// SPDX-License-Identifier: Apache-2.0
// The config.yaml of the plan. No program ever read it, so it has no implicit defaults.

import type { ConfigPath } from '../../config-path.ts';
import type { ImportContext } from '../context.ts';
import { formatMiB, formatSeconds } from '../output/amounts.ts';
import { isNull } from '../source/reader.ts';
import { SourceSection, type SourceTree } from '../source/tree.ts';
import {
  SSH_PATH,
  setDiskStorage,
  setHosts,
  setPrivateKey,
  setTemplateId,
  setUnverifiedImage,
  toEntryName,
} from './shared.ts';

const UNKNOWN_KEY_NOTE = 'is an unknown key';
const MIB_PER_GIB = 1024;

export function mapPlan(context: ImportContext, root: SourceSection): void {
  const { reader } = context;
  for (const key of ['vm_template', 'cloud_init', 'vm_sizes', 'readiness_check'])
    expectMap(context, root.find(key));
  mapHosts(context, root);
  const template = root.section('vm_template');
  mapTemplate(context, template);
  const cloudInit = root.section('cloud_init');
  mapPublicKey(context, cloudInit);
  mapSizes(context, root.section('vm_sizes'));
  const readiness = root.section('readiness_check');
  setSecondsKey(context, readiness, { key: 'timeout_seconds', path: ['readiness', 'timeout'] });
  setSecondsKey(context, readiness, {
    key: 'ssh_check_interval_seconds',
    path: ['readiness', 'sshInterval'],
  });
  for (const section of [root, template, cloudInit, readiness])
    reader.noteUnreadKeys(section, 'not-imported', UNKNOWN_KEY_NOTE);
}

/** A key without a value has no meaning, because no program reads the plan. */
function expectMap({ writer, reader }: ImportContext, tree: SourceTree | undefined): void {
  if (tree !== undefined && isNull(tree)) {
    writer.note(tree, 'not-imported', 'has no value, so it was treated as absent');
  } else reader.expectKind(tree, 'map');
}

function mapHosts(context: ImportContext, root: SourceSection): void {
  const { writer, reader } = context;
  const list = root.find('proxmox_nodes');
  const hosts = reader.readTextList(list).map(({ text }) => text);
  if (list !== undefined && hosts.length > 0) setHosts(writer, hosts, list);
  else {
    const placeholder = {
      where: root.refTo('proxmox_nodes'),
      message: 'the Proxmox hosts to log in to',
    };
    writer.setPlaceholder([...SSH_PATH, 'hosts'], ['proxmox.invalid'], placeholder);
  }
  const user = root.find('ssh_user');
  const name = reader.readText(user);
  if (user !== undefined && name !== undefined) writer.set([...SSH_PATH, 'user'], name, user);
  setPrivateKey(context, root, 'ssh_private_key_path');
}

interface MappedKey {
  readonly key: string;
  readonly path: ConfigPath;
}

function setTextKey(
  { writer, reader }: ImportContext,
  section: SourceSection,
  { key, path }: MappedKey,
): SourceTree | undefined {
  const tree = section.find(key);
  const text = reader.readText(tree);
  if (tree === undefined || text === undefined) return undefined;
  writer.set(path, text, tree);
  return tree;
}

function setNumberKey(
  context: ImportContext,
  section: SourceSection,
  entry: MappedKey & { readonly write?: (value: number) => string | number },
): void {
  const tree = section.find(entry.key);
  const value = context.reader.readInteger(tree);
  if (tree === undefined || value === undefined) return;
  context.writer.set(entry.path, entry.write?.(value) ?? value, tree);
}

function setSecondsKey(context: ImportContext, section: SourceSection, entry: MappedKey): void {
  setNumberKey(context, section, { ...entry, write: formatSeconds });
}

function mapTemplate(context: ImportContext, section: SourceSection): void {
  const { writer, reader } = context;
  const name = reader.readText(section.find('name')) ?? 'template';
  const template: ConfigPath = ['templates', toEntryName(name, 'template')];
  if (section.keys().length === 0) return;
  if (setTextKey(context, section, { key: 'name', path: [...template, 'name'] }) === undefined) {
    writer.setPlaceholder([...template, 'name'], name, {
      where: section.refTo('name'),
      message: 'the name of the template',
    });
  }
  setTemplateId(context, template, section);
  mapImage(context, section, template);
  setNumberKey(context, section, { key: 'base_cpus', path: [...template, 'cpu'] });
  setNumberKey(context, section, {
    key: 'base_memory_mb',
    path: [...template, 'memory'],
    write: formatMiB,
  });
  setNumberKey(context, section, {
    key: 'base_disk_gb',
    path: [...template, 'disk'],
    write: (gib) => formatMiB(gib * MIB_PER_GIB),
  });
  setTextKey(context, section, { key: 'network_bridge', path: [...template, 'bridge'] });
  setDiskStorage(context, section, 'storage_pool');
  writer.note(
    section.refTo('storage_pool'),
    'imported-differently',
    'became the storage for disks; images go to storage.images, because an LVM storage cannot store them',
  );
}

function mapImage(context: ImportContext, section: SourceSection, template: ConfigPath): void {
  const image = String(template.at(-1));
  const url = setTextKey(context, section, { key: 'image_url', path: ['images', image, 'url'] });
  const checksum = section.find('checksum_url');
  if (url === undefined) {
    if (checksum !== undefined)
      context.writer.note(checksum, 'not-imported', 'belongs to image_url, which is missing');
    return;
  }
  context.writer.setOwn([...template, 'image'], image, '');
  if (
    setTextKey(context, section, {
      key: 'checksum_url',
      path: ['images', image, 'checksumUrl'],
    }) === undefined
  ) {
    setUnverifiedImage(context, image, section.refTo('checksum_url'));
  }
}

function mapPublicKey({ writer, reader }: ImportContext, section: SourceSection): void {
  const tree = section.find('ssh_public_key');
  const text = reader.readText(tree);
  writer.setFixedBehavior(['ssh', 'user'], 'ubuntu', 'the guest user has a fixed name');
  if (tree !== undefined && text !== undefined) writer.set(['ssh', 'publicKeys'], [text], tree);
}

function mapSizes(context: ImportContext, sizes: SourceSection): void {
  for (const name of sizes.keys()) {
    const tree = sizes.find(name);
    expectMap(context, tree);
    if (tree?.kind !== 'map') continue;
    const section = new SourceSection(tree.path, tree);
    const entryName = toEntryName(name, 'size');
    if (entryName !== name)
      context.writer.note(
        tree,
        'imported-differently',
        `became '${entryName}', because the name is not allowed as a key`,
      );
    const path: ConfigPath = ['sizes', entryName];
    setNumberKey(context, section, { key: 'cpus', path: [...path, 'cpu'] });
    setNumberKey(context, section, {
      key: 'memory_mb',
      path: [...path, 'memory'],
      write: formatMiB,
    });
    setNumberKey(context, section, {
      key: 'disk_gb',
      path: [...path, 'disk'],
      write: (gib) => formatMiB(gib * MIB_PER_GIB),
    });
    context.reader.noteUnreadKeys(section, 'not-imported', UNKNOWN_KEY_NOTE);
  }
}
