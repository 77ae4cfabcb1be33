// SPDX-License-Identifier: Apache-2.0
// The plan's config.yaml. No program ever read it: nothing is absent "by default", values are taken as meant.

import type { Context } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import { fromMiB, fromSeconds } from '../ours/units.ts';
import { isNull } from '../source/reader.ts';
import { Section, type Tree } from '../source/tree.ts';
import {
  carryDisks,
  carryHosts,
  carryPrivateKey,
  carryTemplateId,
  carryUnverifiedImage,
  givenName,
  SSH_PATH,
} from './shared.ts';

const UNKNOWN = 'is not a key of the plan';
const GIB = 1024;

export function mapPlan(context: Context, root: Section): void {
  const { read } = context;
  for (const key of ['vm_template', 'cloud_init', 'vm_sizes', 'readiness_check'])
    expectMap(context, root.find(key));
  mapHosts(context, root);
  const template = root.section('vm_template');
  mapTemplate(context, template);
  const cloudInit = root.section('cloud_init');
  mapPublicKey(context, cloudInit);
  mapSizes(context, root.section('vm_sizes'));
  const readiness = root.section('readiness_check');
  carrySeconds(context, readiness, { key: 'timeout_seconds', path: ['readiness', 'timeout'] });
  carrySeconds(context, readiness, {
    key: 'ssh_check_interval_seconds',
    path: ['readiness', 'sshInterval'],
  });
  for (const section of [root, template, cloudInit, readiness])
    read.unknown(section, 'not-carried', UNKNOWN);
}

/** The plan has no program for which a key without a value would mean something. */
function expectMap({ work, read }: Context, tree: Tree | undefined): void {
  if (tree !== undefined && isNull(tree)) {
    work.note(tree, 'not-carried', 'has no value, so it was treated as absent');
  } else read.expect(tree, 'map');
}

function mapHosts(context: Context, root: Section): void {
  const { work, read } = context;
  const list = root.find('proxmox_nodes');
  const hosts = read.texts(list).map(({ text }) => text);
  if (list !== undefined && hosts.length > 0) carryHosts(work, hosts, list);
  else {
    const about = { where: root.where('proxmox_nodes'), message: 'the Proxmox hosts to log in to' };
    work.placeholder([...SSH_PATH, 'hosts'], ['proxmox.invalid'], about);
  }
  const user = root.find('ssh_user');
  const name = read.text(user);
  if (user !== undefined && name !== undefined) work.carry([...SSH_PATH, 'user'], name, user);
  carryPrivateKey(context, root, 'ssh_private_key_path');
}

interface Key {
  readonly key: string;
  readonly path: DraftPath;
}

function carryText(
  { work, read }: Context,
  section: Section,
  { key, path }: Key,
): Tree | undefined {
  const tree = section.find(key);
  const text = read.text(tree);
  if (tree === undefined || text === undefined) return undefined;
  work.carry(path, text, tree);
  return tree;
}

function carryNumber(
  context: Context,
  section: Section,
  entry: Key & { readonly write?: (value: number) => string | number },
): void {
  const tree = section.find(entry.key);
  const value = context.read.integer(tree);
  if (tree === undefined || value === undefined) return;
  context.work.carry(entry.path, entry.write?.(value) ?? value, tree);
}

function carrySeconds(context: Context, section: Section, entry: Key): void {
  carryNumber(context, section, { ...entry, write: fromSeconds });
}

function mapTemplate(context: Context, section: Section): void {
  const { work, read } = context;
  const name = read.text(section.find('name')) ?? 'template';
  const template: DraftPath = ['templates', givenName(name, 'template')];
  if (section.keys().length === 0) return;
  if (carryText(context, section, { key: 'name', path: [...template, 'name'] }) === undefined) {
    work.placeholder([...template, 'name'], name, {
      where: section.where('name'),
      message: 'the name of the template',
    });
  }
  carryTemplateId(context, template, section);
  mapImage(context, section, template);
  carryNumber(context, section, { key: 'base_cpus', path: [...template, 'cpu'] });
  carryNumber(context, section, {
    key: 'base_memory_mb',
    path: [...template, 'memory'],
    write: fromMiB,
  });
  carryNumber(context, section, {
    key: 'base_disk_gb',
    path: [...template, 'disk'],
    write: (gib) => fromMiB(gib * GIB),
  });
  carryText(context, section, { key: 'network_bridge', path: [...template, 'bridge'] });
  carryDisks(context, section, 'storage_pool');
  work.note(
    section.where('storage_pool'),
    'carried-differently',
    'is the storage of disks; the plan wants images there too, which an LVM storage cannot hold: they go to storage.images',
  );
}

function mapImage(context: Context, section: Section, template: DraftPath): void {
  const image = String(template.at(-1));
  const url = carryText(context, section, { key: 'image_url', path: ['images', image, 'url'] });
  const checksum = section.find('checksum_url');
  if (url === undefined) {
    if (checksum !== undefined)
      context.work.note(checksum, 'not-carried', 'there is no image_url that it could be for');
    return;
  }
  context.work.carryOwn([...template, 'image'], image, '');
  if (
    carryText(context, section, { key: 'checksum_url', path: ['images', image, 'checksumUrl'] }) ===
    undefined
  ) {
    carryUnverifiedImage(context, image, section.where('checksum_url'));
  }
}

function mapPublicKey({ work, read }: Context, section: Section): void {
  const tree = section.find('ssh_public_key');
  const text = read.text(tree);
  work.carryFixed(['ssh', 'user'], 'ubuntu', "the guest's user has a fixed name");
  if (tree !== undefined && text !== undefined) work.carry(['ssh', 'publicKeys'], [text], tree);
}

function mapSizes(context: Context, sizes: Section): void {
  for (const name of sizes.keys()) {
    const tree = sizes.find(name);
    expectMap(context, tree);
    if (tree?.kind !== 'map') continue;
    const section = new Section(tree.path, tree);
    const ours = givenName(name, 'size');
    if (ours !== name)
      context.work.note(
        tree,
        'carried-differently',
        `became '${ours}': the name may not stand as a key here`,
      );
    const path: DraftPath = ['sizes', ours];
    carryNumber(context, section, { key: 'cpus', path: [...path, 'cpu'] });
    carryNumber(context, section, { key: 'memory_mb', path: [...path, 'memory'], write: fromMiB });
    carryNumber(context, section, {
      key: 'disk_gb',
      path: [...path, 'disk'],
      write: (gib) => fromMiB(gib * GIB),
    });
    context.read.unknown(section, 'not-carried', UNKNOWN);
  }
}
