// SPDX-License-Identifier: Apache-2.0
// /storage: storage definitions (storage.cfg). Changes do not touch the volumes.
import { createHash } from 'node:crypto';
import { errorText, serverError } from '../api-error.ts';
import type { Call, Handlers } from '../core.ts';
import { splitList } from '../schema/formats.ts';
import { formatScalar } from '../schema/verify.ts';
import { addStorage } from '../state/build-cluster-state.ts';
import { STORAGE_TYPE_NAMES, type StorageType } from '../state/cluster-description.ts';
import type { Storage } from '../state/model.ts';
import { STORAGE_TYPE_RULES, type StorageTypeRules } from '../storage/type-rules.ts';
import { requireStorage } from '../storage/volumes.ts';

const VISIBLE_WITH = {
  privileges: ['Datastore.Audit', 'Datastore.AllocateSpace'],
  any: true,
} as const;
/** Size of a storage that is created over the API. */
const DEFAULT_SIZE_BYTES = 100 * 2 ** 30;
const DIRECTORY = /^\/[-/a-zA-Z0-9_.@]+$/;

type StorageOptions = Readonly<Record<string, string>>;

function formatDefinition(storage: Storage): Record<string, unknown> {
  return {
    storage: storage.id,
    type: storage.type,
    content: storage.content.join(','),
    ...(storage.path === undefined ? {} : { path: storage.path }),
    ...(storage.shared ? { shared: 1 } : {}),
    ...(storage.hosts === undefined ? {} : { nodes: storage.hosts.join(',') }),
    ...(storage.enabled ? {} : { disable: 1 }),
    ...storage.options,
  };
}

/** One digest for all definitions, since they are one file. */
function definitionsDigest(call: Call): string {
  const all = [...call.state.storages.values()].map(formatDefinition);
  return createHash('sha1').update(JSON.stringify(all)).digest('hex');
}

function listDefinitions(call: Call): unknown {
  const type = call.optional('type');
  const digest = definitionsDigest(call);
  return [...call.state.storages.values()]
    .filter((storage) => call.isAllowed({ path: `/storage/${storage.id}`, ...VISIBLE_WITH }))
    .filter((storage) => type === undefined || storage.type === type)
    .map((storage) => ({ ...formatDefinition(storage), digest }));
}

/** All parameters except the id, the type and the ones that control the call. */
function readStorageOptions(call: Call): StorageOptions {
  const apart = ['storage', 'type', 'digest', 'delete'];
  const given = Object.entries(call.params).filter(([name]) => !apart.includes(name));
  return Object.fromEntries(given.map(([name, value]) => [name, formatScalar(value)]));
}

function requireKnownOptions(options: StorageOptions, rules: StorageTypeRules | undefined): void {
  if (rules === undefined) return;
  const known = [...rules.fixed, ...rules.optional];
  const foreign = Object.keys(options).find((name) => !known.includes(name));
  if (foreign !== undefined) throw serverError(`unexpected property '${foreign}'`);
}

/** Drops content types that the storage type does not support; Proxmox only logs a warning on the host. */
function parseContent(
  text: string | undefined,
  rules: StorageTypeRules | undefined,
): readonly string[] {
  if (text === undefined) return rules?.defaultContent ?? ['images'];
  const kept = splitList(text).filter((one) => rules?.contents.includes(one) !== false);
  if (kept.includes('none') && kept.length > 1) {
    throw serverError("unable to combine 'none' with other content types");
  }
  if (kept.length === 0 && rules?.contents.includes('none') === false) {
    throw serverError("storage does not support content type 'none'");
  }
  return kept.filter((one) => one !== 'none');
}

function checkCreateOptions(type: StorageType, given: StorageOptions, id: string): StorageOptions {
  const rules = STORAGE_TYPE_RULES[type];
  const mounted = ['nfs', 'cifs'].includes(type) && given['path'] === undefined;
  const options = mounted ? { ...given, path: `/mnt/pve/${id}` } : given;
  requireKnownOptions(options, rules);
  const missing = rules?.fixed.find((name) => options[name] === undefined);
  if (missing !== undefined) throw serverError(`missing value for required option '${missing}'`);
  const { path = '/' } = options;
  if (type === 'dir' && !DIRECTORY.test(path)) {
    throw serverError(`illegal path for directory storage: ${path}`);
  }
  return options;
}

/** Runs a change of storage.cfg under its lock; prefixes every error with the action. */
function changeStorageConfig<T>(call: Call, action: string, work: () => T): T {
  try {
    if (!call.state.quorate) throw serverError("cfs-lock 'file-storage_cfg' error: no quorum!");
    return work();
  } catch (error) {
    throw serverError(`${action} storage failed: ${errorText(error)}`);
  }
}

function createDefinition(call: Call): unknown {
  const id = call.text('storage');
  const type = STORAGE_TYPE_NAMES.find((name) => name === call.text('type'));
  if (type === undefined) throw serverError(`unknown storage type '${call.text('type')}'`);
  const options = checkCreateOptions(type, withoutEmptyNodes(readStorageOptions(call)), id);
  const content = parseContent(options['content'], STORAGE_TYPE_RULES[type]);
  changeStorageConfig(call, 'create', () => {
    if (call.state.storages.has(id)) throw serverError(`storage ID '${id}' already defined`);
    const { path, shared, nodes } = options;
    addStorage(call.state, {
      name: id,
      type,
      content,
      size: DEFAULT_SIZE_BYTES,
      enabled: options['disable'] !== '1',
      ...(path === undefined ? {} : { path }),
      ...(shared === undefined ? {} : { shared: shared === '1' }),
      ...(nodes === undefined ? {} : { hosts: splitList(nodes) }),
    });
    requireStorage(call.state, id).options = typeSpecificOptions(options);
  });
  return { storage: id, type };
}

function withoutEmptyNodes(options: StorageOptions): StorageOptions {
  const { nodes, ...rest } = options;
  return nodes === undefined || nodes === '' || nodes === '0' ? rest : options;
}

const OWN_FIELDS = ['content', 'path', 'shared', 'nodes', 'disable', 'password'];

function typeSpecificOptions(options: StorageOptions): Record<string, string> {
  return Object.fromEntries(Object.entries(options).filter(([name]) => !OWN_FIELDS.includes(name)));
}

function requireDeletable(
  names: readonly string[],
  set: StorageOptions,
  rules?: StorageTypeRules,
): void {
  for (const name of names) {
    if (rules === undefined) continue;
    if (rules.fixed.includes(name)) throw serverError(`unable to delete required option '${name}'`);
    if (!rules.optional.includes(name)) throw serverError(`no such option '${name}'`);
    if (set[name] !== undefined) {
      throw serverError(`cannot set and delete property '${name}' at the same time!`);
    }
  }
}

function updateDefinition(call: Call): unknown {
  const id = call.text('storage');
  return changeStorageConfig(call, 'update', () => {
    const digest = call.optional('digest');
    if (digest !== undefined && digest !== '' && digest !== definitionsDigest(call)) {
      throw serverError('detected modified configuration - file changed by other user? Try again.');
    }
    const storage = requireStorage(call.state, id);
    const rules = STORAGE_TYPE_RULES[storage.type];
    const options = readStorageOptions(call);
    const fixed = Object.keys(options).find((name) => rules?.fixed.includes(name));
    if (fixed !== undefined) throw serverError(`can't change value of fixed parameter '${fixed}'`);
    requireKnownOptions(options, rules);
    const deleted = splitList(call.text('delete'));
    requireDeletable(deleted, options, rules);
    applyChange(storage, options, deleted);
    return { storage: id, type: storage.type };
  });
}

function applyChange(storage: Storage, options: StorageOptions, deleted: readonly string[]): void {
  const rules = STORAGE_TYPE_RULES[storage.type];
  const { content, nodes, disable, shared } = options;
  if (content !== undefined) storage.content = parseContent(content, rules);
  else if (deleted.includes('content')) storage.content = parseContent(undefined, rules);
  if (nodes !== undefined) storage.hosts = nodes === '' ? undefined : splitList(nodes);
  else if (deleted.includes('nodes')) storage.hosts = undefined;
  if (disable !== undefined || deleted.includes('disable')) storage.enabled = disable !== '1';
  if (shared !== undefined || deleted.includes('shared')) storage.shared = shared === '1';
  const kept = Object.entries(storage.options).filter(([name]) => !deleted.includes(name));
  storage.options = { ...Object.fromEntries(kept), ...typeSpecificOptions(options) };
}

function removeDefinition(call: Call): null {
  const id = call.text('storage');
  changeStorageConfig(call, 'delete', () => {
    requireStorage(call.state, id);
    call.state.storages.delete(id);
  });
  call.state.acl = call.state.acl.filter(({ path }) => path !== `/storage/${id}`);
  for (const pool of call.state.pools.values()) pool.storages.delete(id);
  call.state.accessVersion += 1;
  return null;
}

export const STORAGE_DEFINITION_HANDLERS: Handlers = {
  'GET /storage': listDefinitions,
  'POST /storage': createDefinition,
  'GET /storage/{storage}': (call) => ({
    ...formatDefinition(requireStorage(call.state, call.text('storage'))),
    digest: definitionsDigest(call),
  }),
  'PUT /storage/{storage}': updateDefinition,
  'DELETE /storage/{storage}': removeDefinition,
};
