// SPDX-License-Identifier: Apache-2.0
// Label and field selectors of lists, watches and deletions of collections.
import {
  type LabelSelectorSource,
  matchesSelector,
  parseLabelSelector,
} from '../../../model/selector.ts';
import { ApiError } from './api-error.ts';
import { type JsonObject, labelsOf, readPath, type SimObject } from './objects.ts';
import type { Resource } from './resources.ts';

export type ObjectFilter = (object: SimObject) => boolean;

const EVENT_FIELDS = ['involvedObject', 'regarding'].flatMap((field) =>
  ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
    (key) => `${field}.${key}`,
  ),
);
/** Besides `metadata.name` and `metadata.namespace`. A real API server refuses every other field. */
const SELECTABLE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  pods: [
    'spec.nodeName',
    'spec.restartPolicy',
    'spec.schedulerName',
    'spec.serviceAccountName',
    'spec.hostNetwork',
    'status.phase',
    'status.podIP',
    'status.nominatedNodeName',
  ],
  nodes: ['spec.unschedulable'],
  namespaces: ['status.phase'],
  secrets: ['type'],
  events: [...EVENT_FIELDS, 'reason', 'reportingComponent', 'source', 'type'],
  replicasets: ['status.replicas'],
  jobs: ['status.successful'],
  certificatesigningrequests: ['spec.signerName'],
};

/** The filter of `labelSelector` and `fieldSelector`. Fields are read from the object as it is presented. */
export function parseSelectors(resource: Resource, query: URLSearchParams): ObjectFilter {
  const byLabels = parseLabelQuery(query.get('labelSelector') ?? '');
  const byFields = parseFieldQuery(resource, query.get('fieldSelector') ?? '');
  return (object) => byLabels(object) && byFields(object);
}

function parseLabelQuery(text: string): ObjectFilter {
  if (text.trim() === '') return () => true;
  return selectorFilter({ matchExpressions: splitRequirements(text).map(parseRequirement) });
}

/** The filter of a LabelSelector object; invalid selectors match nothing. */
export function selectorFilter(source: LabelSelectorSource | undefined): ObjectFilter {
  const parsed = parseLabelSelector(source);
  if (!parsed.ok) return () => false;
  return (object) => matchesSelector(parsed.value, labelsOf(object));
}

/** Splits at commas outside parentheses. */
function splitRequirements(text: string): readonly string[] {
  return text.split(/,(?![^(]*\))/).map((one) => one.trim());
}

function parseRequirement(text: string) {
  const found = parseSet(text) ?? parseEquality(text) ?? parsePresence(text);
  if (found !== undefined) return found;
  throw new ApiError(400, 'BadRequest', `unable to parse requirement: ${text}`);
}

function parseSet(text: string) {
  const [, key, operator, values = ''] = /^([^\s!=]+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(text) ?? [];
  if (key === undefined) return undefined;
  const list = values.split(',').map((value) => value.trim());
  return { key, operator: operator === 'in' ? 'In' : 'NotIn', values: list };
}

function parseEquality(text: string) {
  const [, key, operator, value = ''] = /^([^\s!=]+)\s*(==|=|!=)\s*(\S*)$/.exec(text) ?? [];
  if (key === undefined) return undefined;
  return { key, operator: operator === '!=' ? 'NotIn' : 'In', values: [value] };
}

function parsePresence(text: string) {
  const [, not, key] = /^(!?)\s*([^\s!=,()]+)$/.exec(text) ?? [];
  if (key === undefined) return undefined;
  return { key, operator: not === '!' ? 'DoesNotExist' : 'Exists' };
}

function parseFieldQuery({ plural }: Resource, text: string): ObjectFilter {
  if (text === '') return () => true;
  const supported = ['metadata.name', 'metadata.namespace', ...(SELECTABLE_FIELDS[plural] ?? [])];
  const terms = text.split(',').map((term) => {
    const [, field = '', operator, value = ''] = /^([^!=]+)(==|=|!=)(.*)$/.exec(term) ?? [];
    if (!supported.includes(field)) {
      throw new ApiError(400, 'BadRequest', `field label not supported: ${field || term}`);
    }
    return { path: field.split('.'), isEqual: operator !== '!=', value };
  });
  return (object) =>
    terms.every(({ path, isEqual, value }) => (readField(object, path) === value) === isEqual);
}

function readField(object: JsonObject, path: readonly string[]): string {
  const value = readPath(object, path);
  if (typeof value === 'boolean' || typeof value === 'number') return String(value);
  return typeof value === 'string' ? value : '';
}
