// SPDX-License-Identifier: Apache-2.0
// Detects the system that a file belongs to before the file is converted, so that a wrong `--from` leads
// to one clear message instead of many missing keys.

import type { SourceSystem } from '../source-systems.ts';
import type { SourcePosition } from './result.ts';
import { SourceSection, type SourceTree } from './source/tree.ts';
import { detectPlanFile } from './vm-plan/index.ts';

export type DetectedSystem =
  | SourceSystem
  | 'pvescaler'
  | 'kubenodesmith-objects'
  | 'cluster-autoscaler'
  | 'other-objects';

export interface Detection {
  readonly system: DetectedSystem;
  /** Position of the key that identified the system. */
  readonly at: SourcePosition;
}

const PYTHON_SETTING = /^[ \t]*pxe_\w+[ \t]*(?::[^=\n]*)?=/m;
const START: SourcePosition = { line: 1, column: 1 };

/** Position of a proxmox-autoscaler setting in the text, even if the text is not valid Python. */
export function findPythonSettings(text: string): SourcePosition | undefined {
  const match = PYTHON_SETTING.exec(text);
  if (match === null) return undefined;
  return { line: text.slice(0, match.index).split('\n').length, column: 1 };
}

/** Keys of the `--cloud-config` file of the Cluster Autoscaler provider externalgrpc. */
const CLOUD_CONFIG_KEYS: readonly string[] = ['address', 'key', 'cert', 'cacert', 'grpc_timeout'];

interface DetectionRule {
  readonly system: DetectedSystem;
  /** The key whose position is reported. */
  readonly key: string;
  readonly matches?: (root: SourceSection, tree: SourceTree) => boolean;
}

/** The first matching rule decides. */
const DETECTION_RULES: readonly DetectionRule[] = [
  { system: 'kubenodesmith', key: 'schemaVersion' },
  { system: 'kubenodesmith', key: 'nodePools' },
  { system: 'externalgrpc', key: 'node_groups' },
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
    (key): DetectionRule => ({
      system: 'vm-plan',
      key,
      matches: (_root, tree) => detectPlanFile(tree) !== undefined,
    }),
  ),
  {
    system: 'externalgrpc',
    key: 'proxmox',
    matches: (root) =>
      root
        .section('proxmox')
        .keys()
        .some((key) => /^(?:api_url|token_id|token_secret|node|cloud_image_url)$/.test(key)),
  },
  { system: 'externalgrpc', key: 'k3s' },
  {
    system: 'cluster-autoscaler',
    key: 'address',
    matches: (root) => root.keys().every((key) => CLOUD_CONFIG_KEYS.includes(key)),
  },
];

export function detectSystem(tree: SourceTree): Detection | undefined {
  const root = new SourceSection('', tree);
  const object = detectKubernetesObject(root);
  if (object !== undefined) return object;
  const keys = root.keys();
  const sign = DETECTION_RULES.find(
    ({ key, matches }) => keys.includes(key) && (matches?.(root, tree) ?? true),
  );
  return sign === undefined
    ? undefined
    : { system: sign.system, at: root.refTo(sign.key).at ?? START };
}

const TOP_KEYS: Readonly<Record<Exclude<SourceSystem, 'proxmox-autoscaler'>, readonly string[]>> = {
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

/** The top-level keys of the system if the file has none of them; otherwise empty. */
export function findMissingTopKeys(
  tree: SourceTree,
  from: Exclude<SourceSystem, 'proxmox-autoscaler'>,
): readonly string[] {
  const present = new SourceSection('', tree).keys();
  const known = TOP_KEYS[from];
  return known.some((key) => present.includes(key)) ? [] : known;
}

function detectKubernetesObject(root: SourceSection): Detection | undefined {
  const version = root.find('apiVersion');
  if (version?.kind !== 'scalar') return undefined;
  const at = version.at ?? START;
  const text = String(version.value);
  if (text.startsWith('pvescaler.dev/')) return { system: 'pvescaler', at };
  if (root.find('kind') === undefined) return undefined;
  return { system: text.includes('kubenodesmith') ? 'kubenodesmith-objects' : 'other-objects', at };
}

/** Explains what to do with a file of another system. */
export function explainWrongFile(owner: DetectedSystem, from: SourceSystem): string {
  switch (owner) {
    case 'pvescaler':
      return 'this is already a pvescaler config; there is nothing to import';
    case 'kubenodesmith-objects':
      return 'this is a Kubernetes object of a later KubeNodeSmith version; only the config file (schemaVersion: v1alpha1) can be imported';
    case 'other-objects':
      return `this is a Kubernetes object without settings of ${from}; pass the config file or its ConfigMap`;
    case 'cluster-autoscaler':
      return 'this is the --cloud-config file of the Cluster Autoscaler, which does not need to change; import the config file of the provider instead';
    case 'externalgrpc':
    case 'proxmox-autoscaler':
    case 'vm-plan':
    case 'kubenodesmith':
      return `this is a ${owner} file: use --from ${owner}`;
  }
}
