// SPDX-License-Identifier: Apache-2.0
// Labels: what a key and a value may be, lists of them as text, and which ones a node may give itself.

import { dnsSubdomain } from './dns-name.ts';
import { accepted, type Parsed, refused } from './parsed.ts';

export type Labels = Readonly<Record<string, string>>;

const NAME_LENGTH = 63;
const NAME_RULE =
  "must be letters, digits, '-', '_' and '.', and start and end with a letter or digit";

/** A qualified name: `name` or `prefix/name`. Keys of labels and taints and names of resources are such. */
export function parseLabelKey(text: string): Parsed<string> {
  const [first = '', second, ...more] = text.split('/');
  if (more.length > 0) return refused(`key '${text}' has more than one '/'`);
  if (second === undefined) return parseName(text, first);
  const prefix = dnsSubdomain(first);
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
  if (name.length > NAME_LENGTH) return `is longer than ${NAME_LENGTH} characters`;
  const isName = /^[A-Za-z0-9._-]+$/.test(name) && !/^[._-]|[._-]$/.test(name);
  return isName ? undefined : NAME_RULE;
}

/** Checks every key and value of labels that came as an object. */
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

/** Reads `a=b,c=d`. White space around a pair, a key or a value is dropped; no text at all means no labels. */
export function parseLabels(text: string): Parsed<Labels> {
  const labels = new Map<string, string>();
  for (const pair of text.trim() === '' ? [] : text.split(',')) {
    const label = parseLabel(pair.trim());
    if (!label.ok) return label;
    const [key, value] = label.value;
    if (labels.has(key)) return refused(`label '${key}' stands twice`);
    labels.set(key, value);
  }
  return accepted(Object.fromEntries(labels));
}

function parseLabel(pair: string): Parsed<readonly [key: string, value: string]> {
  const at = pair.indexOf('=');
  if (at < 0) return refused(`'${pair}' is not of the form key=value`);
  const key = pair.slice(0, at).trim();
  const value = pair.slice(at + 1).trim();
  const checked = checkLabel(key, value);
  return checked.ok ? accepted([key, value]) : checked;
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
 * Whether admission (NodeRestriction) refuses a node that registers with this label, so that somebody else
 * has to set it afterwards. A kubelet refuses to start with such a label in its flags, too.
 */
export function kubeletMayNotSet(key: string): boolean {
  const at = key.indexOf('/');
  if (at < 0 || KUBELET_LABELS.has(key)) return false;
  const namespace = key.slice(0, at);
  return isWithin(namespace, RESERVED_DOMAINS) && !isWithin(namespace, KUBELET_DOMAINS);
}

function isWithin(namespace: string, domains: readonly string[]): boolean {
  return domains.some((domain) => namespace === domain || namespace.endsWith(`.${domain}`));
}
