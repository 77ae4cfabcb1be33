// SPDX-License-Identifier: Apache-2.0
// Labels: valid keys and values, formatting, and which labels a kubelet may set on its own Node.

import { parseDnsSubdomain } from './names.ts';
import { accepted, type Parsed, refused } from './parsed.ts';

export type Labels = Readonly<Record<string, string>>;

const MAX_NAME_LENGTH = 63;
const NAME_RULE =
  "must be letters, digits, '-', '_' and '.', and start and end with a letter or digit";

/** A qualified name, `name` or `prefix/name`: the key of a label or taint, or the name of a resource. */
export function parseLabelKey(text: string): Parsed<string> {
  const [first = '', second, ...more] = text.split('/');
  if (more.length > 0) return refused(`key '${text}' has more than one '/'`);
  if (second === undefined) return parseName(text, first);
  const prefix = parseDnsSubdomain(first);
  if (!prefix.ok) return refused(`prefix of key '${text}' ${prefix.problem}`);
  return parseName(text, second);
}

function parseName(key: string, name: string): Parsed<string> {
  if (name === '') return refused(key === '' ? 'key is empty' : `key '${key}' has no name`);
  const problem = nameProblem(name);
  return problem === undefined ? accepted(key) : refused(`key '${key}' ${problem}`);
}

export function parseLabelValue(text: string): Parsed<string> {
  const problem = text === '' ? undefined : nameProblem(text);
  return problem === undefined ? accepted(text) : refused(`value '${text}' ${problem}`);
}

function nameProblem(name: string): string | undefined {
  if (name.length > MAX_NAME_LENGTH) return `is longer than ${MAX_NAME_LENGTH} characters`;
  const isName = /^[A-Za-z0-9._-]+$/.test(name) && !/^[._-]|[._-]$/.test(name);
  return isName ? undefined : NAME_RULE;
}

/** Checks every key and value. */
export function checkLabels(labels: Labels): Parsed<Labels> {
  for (const [key, value] of Object.entries(labels)) {
    const checked = checkLabel(key, value);
    if (!checked.ok) return checked;
  }
  return accepted(labels);
}

function checkLabel(key: string, value: string): Parsed<string> {
  const checked = parseLabelKey(key);
  if (!checked.ok) return checked;
  const valued = parseLabelValue(value);
  return valued.ok ? checked : refused(`${valued.problem} (of key '${key}')`);
}

/** `a=b,c=d`, sorted by key. */
export function formatLabels(labels: Labels): string {
  return Object.keys(labels)
    .sort()
    .map((key) => `${key}=${labels[key]}`)
    .join(',');
}

const KUBELET_LABELS: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
]);
const RESERVED_DOMAINS = ['kubernetes.io', 'k8s.io'];
const KUBELET_DOMAINS = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

/**
 * Whether the NodeRestriction admission plugin rejects a Node that registers with this label. Such a label must
 * be patched after the registration. A kubelet also refuses to start with such a label in its flags.
 */
export function isKubeletRestrictedLabel(key: string): boolean {
  const at = key.indexOf('/');
  if (at < 0 || KUBELET_LABELS.has(key)) return false;
  const namespace = key.slice(0, at);
  return isWithin(namespace, RESERVED_DOMAINS) && !isWithin(namespace, KUBELET_DOMAINS);
}

function isWithin(namespace: string, domains: readonly string[]): boolean {
  return domains.some((domain) => namespace === domain || namespace.endsWith(`.${domain}`));
}
