// SPDX-License-Identifier: Apache-2.0
// Whose file is this? Asked before anything is read from it, so that the answer to a wrong `--from` is a
// sentence and not a page of missing keys.

import type { Position, System } from './result.ts';
import { Section, type Tree } from './source/tree.ts';
import { planFileOf } from './vm-plan/index.ts';

export type Owner =
  | System
  | 'pvescaler'
  | 'kubenodesmith-objects'
  | 'cluster-autoscaler'
  | 'other-objects';

export interface Detected {
  readonly owner: Owner;
  /** The key that told. */
  readonly at: Position;
}

const PYTHON_SETTING = /^[ \t]*pxe_\w+[ \t]*(?::[^=\n]*)?=/m;
const START: Position = { line: 1, column: 1 };

/** A settings module of proxmox-autoscaler, by its text alone: it need not be one that can be read. */
export function looksLikeSettings(text: string): Position | undefined {
  const match = PYTHON_SETTING.exec(text);
  if (match === null) return undefined;
  return { line: text.slice(0, match.index).split('\n').length, column: 1 };
}

/** The keys of `--cloud-config` with the Cluster Autoscaler's externalgrpc provider. */
const CLOUD_CONFIG: readonly string[] = ['address', 'key', 'cert', 'cacert', 'grpc_timeout'];

interface Sign {
  readonly owner: Owner;
  /** The key to point at. */
  readonly key: string;
  readonly isThere?: (root: Section, tree: Tree) => boolean;
}

/** In this order: the first that is there tells. */
const SIGNS: readonly Sign[] = [
  { owner: 'kubenodesmith', key: 'schemaVersion' },
  { owner: 'kubenodesmith', key: 'nodePools' },
  { owner: 'externalgrpc', key: 'node_groups' },
  ...[
    'vm_template',
    'proxmox_nodes',
    'vm_sizes',
    'vms',
    'vm',
    'ssh',
    'proxmox',
    'readiness_check',
  ].map(
    (key): Sign => ({
      owner: 'vm-plan',
      key,
      isThere: (_root, tree) => planFileOf(tree) !== undefined,
    }),
  ),
  {
    owner: 'externalgrpc',
    key: 'proxmox',
    isThere: (root) =>
      root
        .section('proxmox')
        .keys()
        .some((key) => /^(?:api_url|token_id|token_secret|node|cloud_image_url)$/.test(key)),
  },
  { owner: 'externalgrpc', key: 'k3s' },
  {
    owner: 'cluster-autoscaler',
    key: 'address',
    isThere: (root) => root.keys().every((key) => CLOUD_CONFIG.includes(key)),
  },
];

export function detectOwner(tree: Tree): Detected | undefined {
  const root = new Section('', tree);
  const object = detectObject(root);
  if (object !== undefined) return object;
  const keys = root.keys();
  const sign = SIGNS.find(
    ({ key, isThere }) => keys.includes(key) && (isThere?.(root, tree) ?? true),
  );
  return sign === undefined
    ? undefined
    : { owner: sign.owner, at: root.where(sign.key).at ?? START };
}

const TOP_KEYS: Readonly<Record<Exclude<System, 'proxmox-autoscaler'>, readonly string[]>> = {
  externalgrpc: ['proxmox', 'k3s', 'defaults', 'node_groups'],
  'vm-plan': [
    'proxmox_nodes',
    'ssh_user',
    'ssh_private_key_path',
    'vm_template',
    'cloud_init',
    'vm_sizes',
    'readiness_check',
    'ssh',
    'image',
    'vm',
    'vms',
    'proxmox',
  ],
  kubenodesmith: ['schemaVersion', 'pollingInterval', 'providers', 'nodePools'],
};

/** What a file of the system has at its top, where none of it is there; nothing where some is. */
export function missingTopKeys(
  tree: Tree,
  from: Exclude<System, 'proxmox-autoscaler'>,
): readonly string[] {
  const present = new Section('', tree).keys();
  const known = TOP_KEYS[from];
  return known.some((key) => present.includes(key)) ? [] : known;
}

function detectObject(root: Section): Detected | undefined {
  const version = root.find('apiVersion');
  if (version?.kind !== 'scalar') return undefined;
  const at = version.at ?? START;
  const text = String(version.value);
  if (text.startsWith('pvescaler.dev/')) return { owner: 'pvescaler', at };
  if (root.find('kind') === undefined) return undefined;
  return { owner: text.includes('kubenodesmith') ? 'kubenodesmith-objects' : 'other-objects', at };
}

/** What to do with a file of somebody else's. */
export function wrongFileMessage(owner: Owner, from: System): string {
  switch (owner) {
    case 'pvescaler':
      return 'this is a config of pvescaler already: nothing to import';
    case 'kubenodesmith-objects':
      return 'this is a Kubernetes object of a later KubeNodeSmith; only its config file (schemaVersion: v1alpha1) can be imported';
    case 'other-objects':
      return `this is a Kubernetes object without settings of ${from} in it: give the config file itself, or its ConfigMap`;
    case 'cluster-autoscaler':
      return "this is the Cluster Autoscaler's own --cloud-config: it stays as it is and points to pvescaler; import the config file of the provider";
    default:
      return `this looks like a ${owner} file: use --from ${owner}`;
  }
}
