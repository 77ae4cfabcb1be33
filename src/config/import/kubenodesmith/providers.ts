// SPDX-License-Identifier: Apache-2.0
// `providers`: each of type proxmox is a region. What a provider says about VMs is kept for its pools, since
// here a pool says it.

import { VM_ID_MAX, VM_ID_MIN } from '../../values/vm-id-range.ts';
import { type Context } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import { dnsLabel, uniqueLabel } from '../ours/naming.ts';
import { placeholderEndpoints } from '../ours/required.ts';
import { isNull } from '../source/reader.ts';
import { Section, type Tree } from '../source/tree.ts';
import { noteUnknown } from './strict.ts';
import { VmIdRanges } from './vm-ids.ts';

export interface Provider {
  readonly name: string;
  readonly region: string;
  readonly options: Section;
  /** How many VMs its range of ids can hold. */
  readonly ids: number;
  /** Another provider has the same Proxmox; the settings of the first are those of the region. */
  readonly isShared: boolean;
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
  const regions = new Regions();
  const providers = new Map<string, Provider>();
  for (const name of section.keys()) {
    const provider = section.section(name);
    const named = { name, provider, options: provider.section('options') };
    const type = provider.find('type');
    if (context.read.text(type) === 'proxmox') {
      providers.set(name, mapProvider(context, named, regions));
      continue;
    }
    const where = { ...section.where(name), path: provider.path };
    context.work.note(where, 'not-carried', OTHER_TYPE);
  }
  if (providers.size === 0) placeRegion(context, section);
  return widenShared(context, providers);
}

/** A region of several providers has the hosts of all of them; each one's pools keep to its own. */
function widenShared(
  { work }: Context,
  providers: ReadonlyMap<string, Provider>,
): ReadonlyMap<string, Provider> {
  const sharing = (region: string) => [...providers.values()].filter((it) => it.region === region);
  const shared = [...providers.values()].filter(({ isShared }) => isShared);
  for (const { region, options } of shared) {
    const lists = sharing(region).map((provider) => hostsOf(provider.options));
    const isAny = lists.some((hosts) => hosts.length === 0);
    const where = options.where('nodeWhitelist');
    const path = ['proxmox', region, 'hosts', 'allow'];
    work.carry(path, isAny ? [] : [...new Set(lists.flat())], where);
  }
  return new Map(
    [...providers].map(([name, provider]) => [
      name,
      { ...provider, isShared: sharing(provider.region).length > 1 },
    ]),
  );
}

/** Without a word about what is no text: that was said when the provider was read. */
function hostsOf(options: Section): readonly string[] {
  return options
    .items('nodeWhitelist')
    .flatMap((item) => (item.kind === 'scalar' && item.value !== null ? [String(item.value)] : []));
}

const OTHER_TYPE =
  'is not of type proxmox, the only type that works there and here; its pools are left out too';

function placeRegion({ work }: Context, section: Section): void {
  const message = 'no provider of type proxmox is given: the address of the Proxmox API';
  const about = { where: section, message };
  work.placeholder(['proxmox', 'pve', 'endpoints'], placeholderEndpoints('pve'), about);
  for (const key of ['idRef', 'secretRef']) {
    work.carryOwn(['proxmox', 'pve', 'token', key, 'name'], 'proxmox', 'REPLACE THIS');
  }
}

/** What the providers that came before took. */
class Regions {
  readonly ids = new VmIdRanges();
  readonly names = new Set<string>();
  readonly byEndpoint = new Map<string, Provider>();
}

interface Named {
  readonly name: string;
  readonly provider: Section;
  readonly options: Section;
}

function mapProvider(context: Context, named: Named, regions: Regions): Provider {
  const { name, provider, options } = named;
  noteKeys(context, provider, options);
  const endpoint = endpointOf(context, options);
  const first = endpoint === undefined ? undefined : regions.byEndpoint.get(endpoint);
  if (first !== undefined) return shareRegion(context, named, first);
  const region = uniqueLabel(dnsLabel(name, 'pve'), regions.names);
  regions.names.add(region);
  const root: DraftPath = ['proxmox', region];
  if (region !== name)
    context.work.note(provider, 'carried-differently', `the region is named '${region}'`);
  mapEndpoint(context, options, { root, endpoint });
  mapCredentials(context, provider, root);
  mapHosts(context, options, [...root, 'hosts', 'allow']);
  const ids = mapVmIds(context, options, { root, ranges: regions.ids });
  mapTag(context, options, root);
  const mapped: Provider = { name, region, options, ids, isShared: false };
  if (endpoint !== undefined) regions.byEndpoint.set(endpoint, mapped);
  return mapped;
}

function noteKeys(context: Context, provider: Section, options: Section): void {
  noteUnknown(context, provider, ['type', 'credentialsRef', 'options']);
  noteUnknown(context, options, OPTIONS);
  const type = provider.find('type');
  if (type !== undefined)
    context.work.note(type, 'carried-differently', 'every region is a Proxmox');
}

/** Two providers for one Proxmox are one region here; hosts stay apart, since a pool can name its own. */
function shareRegion(
  context: Context,
  { name, provider, options }: Named,
  first: Provider,
): Provider {
  const { work } = context;
  work.note(
    provider,
    'carried-differently',
    `has the endpoint of provider '${first.name}': one Proxmox is one region here, '${first.region}'`,
  );
  const lost = [
    options.find('vmIDRange'),
    options.find('managedNodeTag'),
    provider.find('credentialsRef'),
  ];
  for (const tree of lost) {
    if (tree !== undefined)
      work.note(tree, 'not-carried', `the region has that of provider '${first.name}'`);
  }
  return { name, region: first.region, options, ids: first.ids, isShared: true };
}

/** The base URL without what both systems add themselves. */
function endpointOf({ read }: Context, options: Section): string | undefined {
  return read
    .text(options.find('endpoint'))
    ?.replace(/\/+$/, '')
    .replace(/\/api2(?:\/json)?$/, '');
}

function mapEndpoint(
  { work }: Context,
  options: Section,
  { root, endpoint }: { readonly root: DraftPath; readonly endpoint: string | undefined },
): void {
  const path = [...root, 'endpoints'];
  const where = options.where('endpoint');
  if (endpoint !== undefined) work.carry(path, [endpoint], where);
  else
    work.placeholder(path, placeholderEndpoints(String(root.at(-1))), {
      where,
      message: 'the address of the Proxmox API',
    });
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

export function mapHosts({ work, read }: Context, options: Section, path: DraftPath): void {
  const tree = options.find('nodeWhitelist');
  const hosts = read.texts(tree).map(({ text }) => text);
  if (tree !== undefined && !isNull(tree)) work.carry(path, hosts, tree);
}

function mapVmIds(
  context: Context,
  options: Section,
  { root, ranges }: { readonly root: DraftPath; readonly ranges: VmIdRanges },
): number {
  const { work, read } = context;
  const tree = options.find('vmIDRange');
  read.expect(tree, 'map');
  const range = new Section(`${options.path}.vmIDRange`, tree);
  const from = read.integer(range.find('lower')) ?? 0;
  const to = read.integer(range.find('upper')) ?? 0;
  noteUnknown(context, range, ['lower', 'upper']);
  const where = {
    path: `${range.path}.lower, ${range.path}.upper`,
    ...(tree?.at === undefined ? {} : { at: tree.at }),
  };
  const path = [...root, 'vmIds'];
  if (from >= VM_ID_MIN && from < to && to <= VM_ID_MAX && ranges.take({ from, to })) {
    work.carry(path, `${from}-${to}`, where);
    return to - from + 1;
  }
  const other = ranges.takeAny();
  const message = from < to ? OVERLAP : NO_RANGE;
  work.placeholder(path, `${other.from}-${other.to}`, { where, message });
  return other.to - other.from + 1;
}

const OVERLAP =
  'a range of VM ids of its own (it overlaps another one, or goes beyond the ids that Proxmox has)';
const NO_RANGE =
  'a range of VM ids (no VM can be made there with this one: upper must be more than lower)';

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
