// SPDX-License-Identifier: Apache-2.0
// `providers`: each one of type proxmox becomes a region. The VM settings of a provider are applied to its
// pools, because in our config they belong to the pool.

import type { ConfigPath } from '../../config-path.ts';
import { VM_ID_MAX, VM_ID_MIN } from '../../values/vm-id-range.ts';
import { type ImportContext } from '../context.ts';
import { makeUniqueLabel, toDnsLabel } from '../output/naming.ts';
import { placeholderEndpoints } from '../output/required.ts';
import { isNull } from '../source/reader.ts';
import { SourceSection, type SourceTree } from '../source/tree.ts';
import { noteUnknownKeys } from './unknown-keys.ts';
import { VmIdRangeAllocator } from './vm-id-ranges.ts';

export interface Provider {
  readonly name: string;
  readonly region: string;
  readonly options: SourceSection;
  /** Number of VM ids in its range. */
  readonly idCount: number;
  /** Another provider has the same Proxmox cluster. The settings of the first one apply to the region. */
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

export function mapProviders(
  context: ImportContext,
  section: SourceSection,
): ReadonlyMap<string, Provider> {
  const regions = new MappedRegions();
  const providers = new Map<string, Provider>();
  for (const name of section.keys()) {
    const provider = section.section(name);
    const named = { name, provider, options: provider.section('options') };
    const type = provider.find('type');
    if (context.reader.readText(type) === 'proxmox') {
      providers.set(name, mapProvider(context, named, regions));
      continue;
    }
    const where = { ...section.refTo(name), path: provider.path };
    context.writer.note(where, 'not-imported', OTHER_TYPE);
  }
  if (providers.size === 0) addPlaceholderRegion(context, section);
  return mergeSharedHosts(context, providers);
}

/**
 * A region of several providers allows the hosts of all of them. The pools of each provider use only its own
 * hosts.
 */
function mergeSharedHosts(
  { writer }: ImportContext,
  providers: ReadonlyMap<string, Provider>,
): ReadonlyMap<string, Provider> {
  const sharing = (region: string) => [...providers.values()].filter((it) => it.region === region);
  const shared = [...providers.values()].filter(({ isShared }) => isShared);
  for (const { region, options } of shared) {
    const lists = sharing(region).map((provider) => readHosts(provider.options));
    const isAny = lists.some((hosts) => hosts.length === 0);
    const where = options.refTo('nodeWhitelist');
    const path = ['proxmox', region, 'hosts', 'allow'];
    writer.set(path, isAny ? [] : [...new Set(lists.flat())], where);
  }
  return new Map(
    [...providers].map(([name, provider]) => [
      name,
      { ...provider, isShared: sharing(provider.region).length > 1 },
    ]),
  );
}

/** Adds no notes about invalid items, because mapHosts already did. */
function readHosts(options: SourceSection): readonly string[] {
  return options
    .items('nodeWhitelist')
    .flatMap((item) => (item.kind === 'scalar' && item.value !== null ? [String(item.value)] : []));
}

const OTHER_TYPE =
  'is not of type proxmox, the only supported type; its pools are not imported either';

function addPlaceholderRegion({ writer }: ImportContext, section: SourceSection): void {
  const message = 'the URL of the Proxmox API; the source file has no provider of type proxmox';
  const placeholder = { where: section, message };
  writer.setPlaceholder(['proxmox', 'pve', 'endpoints'], placeholderEndpoints('pve'), placeholder);
  for (const key of ['idRef', 'secretRef']) {
    writer.setOwn(['proxmox', 'pve', 'token', key, 'name'], 'proxmox', 'REPLACE THIS');
  }
}

/** VM id ranges, names and endpoints that are already in use. */
class MappedRegions {
  readonly ids = new VmIdRangeAllocator();
  readonly names = new Set<string>();
  readonly byEndpoint = new Map<string, Provider>();
}

interface NamedProvider {
  readonly name: string;
  readonly provider: SourceSection;
  readonly options: SourceSection;
}

function mapProvider(
  context: ImportContext,
  named: NamedProvider,
  regions: MappedRegions,
): Provider {
  const { name, provider, options } = named;
  noteProviderKeys(context, provider, options);
  const endpoint = readEndpoint(context, options);
  const first = endpoint === undefined ? undefined : regions.byEndpoint.get(endpoint);
  if (first !== undefined) return shareRegion(context, named, first);
  const region = makeUniqueLabel(toDnsLabel(name, 'pve'), regions.names);
  regions.names.add(region);
  const root: ConfigPath = ['proxmox', region];
  if (region !== name)
    context.writer.note(provider, 'imported-differently', `became region '${region}'`);
  mapEndpoint(context, options, { root, endpoint });
  mapCredentials(context, provider, root);
  mapHosts(context, options, [...root, 'hosts', 'allow']);
  const idCount = mapVmIds(context, options, { root, ranges: regions.ids });
  mapTag(context, options, root);
  const mapped: Provider = { name, region, options, idCount, isShared: false };
  if (endpoint !== undefined) regions.byEndpoint.set(endpoint, mapped);
  return mapped;
}

function noteProviderKeys(
  context: ImportContext,
  provider: SourceSection,
  options: SourceSection,
): void {
  noteUnknownKeys(context, provider, ['type', 'credentialsRef', 'options']);
  noteUnknownKeys(context, options, OPTIONS);
  const type = provider.find('type');
  if (type !== undefined)
    context.writer.note(
      type,
      'imported-differently',
      'is not needed: every region is a Proxmox cluster',
    );
}

/**
 * Two providers for one Proxmox cluster become one region. Their hosts stay separate, because a pool can name
 * its own.
 */
function shareRegion(
  context: ImportContext,
  { name, provider, options }: NamedProvider,
  first: Provider,
): Provider {
  const { writer } = context;
  writer.note(
    provider,
    'imported-differently',
    `has the same endpoint as provider '${first.name}'; one Proxmox cluster is one region, '${first.region}'`,
  );
  const lost = [
    options.find('vmIDRange'),
    options.find('managedNodeTag'),
    provider.find('credentialsRef'),
  ];
  for (const tree of lost) {
    if (tree !== undefined)
      writer.note(tree, 'not-imported', `the region uses the value of provider '${first.name}'`);
  }
  return { name, region: first.region, options, idCount: first.idCount, isShared: true };
}

/** The base URL without the API path, which both systems add themselves. */
function readEndpoint({ reader }: ImportContext, options: SourceSection): string | undefined {
  return reader
    .readText(options.find('endpoint'))
    ?.replace(/\/+$/, '')
    .replace(/\/api2(?:\/json)?$/, '');
}

function mapEndpoint(
  { writer }: ImportContext,
  options: SourceSection,
  { root, endpoint }: { readonly root: ConfigPath; readonly endpoint: string | undefined },
): void {
  const path = [...root, 'endpoints'];
  const where = options.refTo('endpoint');
  if (endpoint !== undefined) writer.set(path, [endpoint], where);
  else
    writer.setPlaceholder(path, placeholderEndpoints(String(root.at(-1))), {
      where,
      message: 'the URL of the Proxmox API',
    });
}

function mapCredentials(context: ImportContext, provider: SourceSection, root: ConfigPath): void {
  const { writer, reader } = context;
  const tree = provider.find('credentialsRef');
  reader.expectKind(tree, 'map');
  const ref = new SourceSection(tree?.path ?? `${provider.path}.credentialsRef`, tree);
  const nameTree = ref.find('name');
  const name = reader.readText(nameTree);
  const namespaceTree = ref.find('namespace');
  const namespace = reader.readText(namespaceTree);
  for (const key of ['idRef', 'secretRef']) {
    const path = [...root, 'token', key];
    if (nameTree !== undefined && name !== undefined) writer.set([...path, 'name'], name, nameTree);
    else {
      const placeholder = {
        where: ref.refTo('name'),
        message: 'the Secret with PROXMOX_TOKEN_ID and PROXMOX_SECRET',
      };
      writer.setPlaceholder([...path, 'name'], 'proxmox', placeholder);
    }
    if (namespaceTree !== undefined && namespace !== undefined) {
      writer.set([...path, 'namespace'], namespace, namespaceTree);
    }
  }
  noteUnknownKeys(context, ref, ['name', 'namespace']);
  writer.note(
    ref,
    'action-required',
    'PROXMOX_SKIP_TLS_VERIFY in the Secret is not imported; set tls.caFile or tls.fingerprints (or tls.insecure)',
  );
}

export function mapHosts(
  { writer, reader }: ImportContext,
  options: SourceSection,
  path: ConfigPath,
): void {
  const tree = options.find('nodeWhitelist');
  const hosts = reader.readTextList(tree).map(({ text }) => text);
  if (tree !== undefined && !isNull(tree)) writer.set(path, hosts, tree);
}

function mapVmIds(
  context: ImportContext,
  options: SourceSection,
  { root, ranges }: { readonly root: ConfigPath; readonly ranges: VmIdRangeAllocator },
): number {
  const { writer, reader } = context;
  const tree = options.find('vmIDRange');
  reader.expectKind(tree, 'map');
  const range = new SourceSection(`${options.path}.vmIDRange`, tree);
  const from = reader.readInteger(range.find('lower')) ?? 0;
  const to = reader.readInteger(range.find('upper')) ?? 0;
  noteUnknownKeys(context, range, ['lower', 'upper']);
  const where = {
    path: `${range.path}.lower, ${range.path}.upper`,
    ...(tree?.at === undefined ? {} : { at: tree.at }),
  };
  const path = [...root, 'vmIds'];
  if (from >= VM_ID_MIN && from < to && to <= VM_ID_MAX && ranges.reserve({ from, to })) {
    writer.set(path, `${from}-${to}`, where);
    return to - from + 1;
  }
  const other = ranges.reserveAny();
  const message = from < to ? OVERLAP : NO_RANGE;
  writer.setPlaceholder(path, `${other.from}-${other.to}`, { where, message });
  return other.to - other.from + 1;
}

const OVERLAP =
  'a separate range of VM ids (this one overlaps another range or is outside the ids that Proxmox allows)';
const NO_RANGE = 'a range of VM ids (in this one, upper is not more than lower)';

function mapTag({ writer, reader }: ImportContext, options: SourceSection, root: ConfigPath): void {
  const tree = options.find('managedNodeTag');
  const tag = reader.readNonNullText(tree) ?? '';
  const where = tree ?? options.refTo('managedNodeTag');
  if (tag === '') {
    writer.note(
      where,
      'imported-differently',
      'is empty, so every VM counts as managed in the source system; in pvescaler a marker on the VM proves ownership',
    );
    return;
  }
  writer.set([...root, 'managedTag'], tag.toLowerCase(), where);
  writer.note(
    where,
    'imported-differently',
    'is set on every new VM (early versions of the source system did not set it) and does not prove ownership, which is proven by a marker on the VM',
  );
}

/** The items of an option that is a list of mappings. */
export function readOptionItems(
  options: SourceSection,
  key: string,
): readonly { readonly item: SourceTree; readonly section: SourceSection }[] {
  return options.items(key).map((item) => ({ item, section: new SourceSection(item.path, item) }));
}
