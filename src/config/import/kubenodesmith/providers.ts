// SPDX-License-Identifier: Apache-2.0
// `providers`: each of type proxmox is a region. What a provider says about VMs is kept for its pools, since
// here a pool says it.

import { type Context } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import { dnsLabel } from '../ours/naming.ts';
import { isNull } from '../source/reader.ts';
import { Section, type Tree } from '../source/tree.ts';
import { noteUnknown } from './strict.ts';

export interface Provider {
  readonly name: string;
  readonly region: string;
  readonly options: Section;
  /** How many VMs its range of ids can hold. */
  readonly ids: number | undefined;
}

const OPTIONS = [
  'endpoint',
  'nodeWhitelist',
  'vmIDRange',
  'vmMemOverheadMiB',
  'managedNodeTag',
  'networkInterfaces',
  'vmOptions',
] as const;

export function mapProviders(context: Context, section: Section): ReadonlyMap<string, Provider> {
  const providers = new Map<string, Provider>();
  for (const name of section.keys()) {
    const provider = section.section(name);
    const options = provider.section('options');
    const type = provider.find('type');
    if (context.read.text(type) !== 'proxmox') {
      const message =
        'is not of type proxmox, the only type that works there and here; its pools are left out too';
      context.work.note({ ...section.where(name), path: provider.path }, 'not-carried', message);
      continue;
    }
    providers.set(name, mapProvider(context, { name, provider, options }));
  }
  if (providers.size > 0) return providers;
  const about = {
    where: section,
    message: 'no provider of type proxmox is given: the address of the Proxmox API',
  };
  context.work.placeholder(
    ['proxmox', 'pve', 'endpoints'],
    ['https://proxmox.invalid:8006'],
    about,
  );
  context.work.carryOwn(['proxmox', 'pve', 'token', 'secretRef', 'name'], 'proxmox', '');
  context.work.carryOwn(['proxmox', 'pve', 'token', 'idRef', 'name'], 'proxmox', '');
  return providers;
}

interface Named {
  readonly name: string;
  readonly provider: Section;
  readonly options: Section;
}

function mapProvider(context: Context, { name, provider, options }: Named): Provider {
  const region = dnsLabel(name, 'pve');
  const root: DraftPath = ['proxmox', region];
  if (region !== name) {
    context.work.note(provider, 'carried-differently', `the region is named '${region}'`);
  }
  mapEndpoint(context, options, root);
  mapCredentials(context, provider, root);
  mapHosts(context, options, root);
  const ids = mapVmIds(context, options, root);
  mapTag(context, options, root);
  noteUnknown(context, provider, ['type', 'credentialsRef', 'options']);
  noteUnknown(context, options, OPTIONS);
  const type = provider.find('type');
  if (type !== undefined)
    context.work.note(type, 'carried-differently', 'every region is a Proxmox');
  return { name, region, options, ids };
}

function mapEndpoint({ work, read }: Context, options: Section, root: DraftPath): void {
  const tree = options.find('endpoint');
  const url = read.text(tree);
  if (tree === undefined || url === undefined) {
    const about = { where: options.where('endpoint'), message: 'the address of the Proxmox API' };
    work.placeholder([...root, 'endpoints'], ['https://proxmox.invalid:8006'], about);
    return;
  }
  const base = url.replace(/\/+$/, '').replace(/\/api2(?:\/json)?$/, '');
  work.carry([...root, 'endpoints'], [base], tree);
}

function mapCredentials(context: Context, provider: Section, root: DraftPath): void {
  const { work, read } = context;
  const tree = provider.find('credentialsRef');
  read.expect(tree, 'map');
  const ref = new Section(tree?.path ?? `${provider.path}.credentialsRef`, tree);
  const nameTree = ref.find('name');
  const name = read.text(nameTree);
  const namespaceTree = ref.find('namespace');
  const namespace = read.text(namespaceTree);
  for (const key of ['idRef', 'secretRef']) {
    const path = [...root, 'token', key];
    if (nameTree !== undefined && name !== undefined) work.carry([...path, 'name'], name, nameTree);
    else {
      const about = {
        where: ref.where('name'),
        message: 'the Secret with PROXMOX_TOKEN_ID and PROXMOX_SECRET',
      };
      work.placeholder([...path, 'name'], 'proxmox', about);
    }
    if (namespaceTree !== undefined && namespace !== undefined) {
      work.carry([...path, 'namespace'], namespace, namespaceTree);
    }
  }
  noteUnknown(context, ref, ['name', 'namespace']);
  work.note(
    ref,
    'needs-you',
    'only you know whether the Secret has PROXMOX_SKIP_TLS_VERIFY: it is not read from there here, so give tls.caFile or tls.fingerprints (or tls.insecure)',
  );
}

function mapHosts({ work, read }: Context, options: Section, root: DraftPath): void {
  const tree = options.find('nodeWhitelist');
  const hosts = read.texts(tree).map(({ text }) => text);
  if (tree !== undefined && !isNull(tree)) work.carry([...root, 'hosts', 'allow'], hosts, tree);
}

function mapVmIds(context: Context, options: Section, root: DraftPath): number | undefined {
  const { work, read } = context;
  const tree = options.find('vmIDRange');
  read.expect(tree, 'map');
  const range = new Section(`${options.path}.vmIDRange`, tree);
  const lower = read.integer(range.find('lower')) ?? 0;
  const upper = read.integer(range.find('upper')) ?? 0;
  noteUnknown(context, range, ['lower', 'upper']);
  const where = {
    path: `${range.path}.lower, ${range.path}.upper`,
    ...(tree?.at === undefined ? {} : { at: tree.at }),
  };
  if (upper <= lower) {
    work.note(
      where,
      'needs-you',
      'no VM can be made there with this range (upper must be more than lower); our own default range holds until you write vmIds',
    );
    return undefined;
  }
  work.carry([...root, 'vmIds'], `${lower}-${upper}`, where);
  return upper - lower + 1;
}

function mapTag({ work, read }: Context, options: Section, root: DraftPath): void {
  const tree = options.find('managedNodeTag');
  const tag = tree === undefined || isNull(tree) ? '' : (read.text(tree) ?? '');
  const where = tree ?? options.where('managedNodeTag');
  if (tag === '') {
    work.note(
      where,
      'carried-differently',
      'is empty, so that every VM counts as managed there; here a mark on the VM decides',
    );
    return;
  }
  work.carry([...root, 'managedTag'], tag.toLowerCase(), where);
  work.note(
    where,
    'carried-differently',
    'is put on every new VM here (the first versions there never did) and proves nothing: a mark on the VM decides what is ours',
  );
}

/** The list under an option, of mappings. */
export function optionItems(
  options: Section,
  key: string,
): readonly { readonly item: Tree; readonly section: Section }[] {
  return options.items(key).map((item) => ({ item, section: new Section(item.path, item) }));
}
