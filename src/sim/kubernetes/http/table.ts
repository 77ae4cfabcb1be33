// SPDX-License-Identifier: Apache-2.0
// Tables for `kubectl get`: the columns of a real API server for the resources that the simulator is used with, name and
// age for the others.
import {
  conditionOf,
  isTerminating,
  type Json,
  type JsonObject,
  labelsOf,
  listField,
  numberField,
  objectField,
  type SimObject,
  specOf,
  statusOf,
  textField,
} from '../storage/objects.ts';
import type { CustomResource, PrinterColumn, Resource } from '../storage/resources.ts';
import { parseJsonPath } from './json-path.ts';

interface Column {
  readonly name: string;
  readonly cell: (object: SimObject, now: number) => Json;
  /** Shown by `-o wide` only. */
  readonly isWide?: boolean;
  readonly type?: string;
  readonly description?: string;
}

interface TableOptions {
  readonly resource: Resource;
  /** `Object` for `kubectl get --sort-by`, which reads the field from it; else its metadata. */
  readonly includeObject: string | null;
  readonly now: number;
}

const status = (key: string) => (object: SimObject) => textField(statusOf(object), key);
const count = (key: string) => (object: SimObject) => numberField(statusOf(object), key);
const field = (key: string) => (object: SimObject) => textField(object, key);

const NAME: Column = { name: 'Name', cell: ({ metadata }) => metadata.name };
const AGE: Column = {
  name: 'Age',
  cell: ({ metadata }, now) => formatAge(metadata.creationTimestamp, now),
};

const CONTAINERS: readonly Column[] = [
  { name: 'Containers', cell: templateContainers('name'), isWide: true },
  { name: 'Images', cell: templateContainers('image'), isWide: true },
];
const SELECTOR: Column = { name: 'Selector', cell: formatSelector, isWide: true };

const nodeInfo = (key: string) => (node: SimObject) =>
  textField(objectField(statusOf(node), 'nodeInfo'), key) || '<unknown>';

/** Between name and age, unless they are listed. */
const COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  Pod: [
    { name: 'Ready', cell: readyContainers },
    { name: 'Status', cell: podState },
    { name: 'Restarts', cell: () => 0 },
    { name: 'IP', cell: (pod) => status('podIP')(pod) || '<none>', isWide: true },
    { name: 'Node', cell: (pod) => textField(specOf(pod), 'nodeName') || '<none>', isWide: true },
    {
      name: 'Nominated Node',
      cell: (pod) => status('nominatedNodeName')(pod) || '<none>',
      isWide: true,
    },
    { name: 'Readiness Gates', cell: () => '<none>', isWide: true },
  ],
  Node: [
    NAME,
    { name: 'Status', cell: nodeState },
    { name: 'Roles', cell: nodeRoles },
    AGE,
    { name: 'Version', cell: nodeInfo('kubeletVersion') },
    { name: 'Internal-IP', cell: nodeAddress('InternalIP'), isWide: true },
    { name: 'External-IP', cell: nodeAddress('ExternalIP'), isWide: true },
    { name: 'OS-Image', cell: nodeInfo('osImage'), isWide: true },
    { name: 'Kernel-Version', cell: nodeInfo('kernelVersion'), isWide: true },
    { name: 'Container-Runtime', cell: nodeInfo('containerRuntimeVersion'), isWide: true },
  ],
  Namespace: [{ name: 'Status', cell: status('phase') }],
  Deployment: [
    { name: 'Ready', cell: readyReplicas },
    { name: 'Up-to-date', cell: count('updatedReplicas') },
    { name: 'Available', cell: count('availableReplicas') },
    ...CONTAINERS,
    SELECTOR,
  ],
  ReplicaSet: [
    { name: 'Desired', cell: (set) => numberField(specOf(set), 'replicas') },
    { name: 'Current', cell: count('replicas') },
    { name: 'Ready', cell: count('readyReplicas') },
    ...CONTAINERS,
    SELECTOR,
  ],
  StatefulSet: [{ name: 'Ready', cell: readyReplicas }, ...CONTAINERS],
  DaemonSet: [
    { name: 'Desired', cell: count('desiredNumberScheduled') },
    { name: 'Current', cell: count('currentNumberScheduled') },
    { name: 'Ready', cell: count('numberReady') },
    { name: 'Up-to-date', cell: count('updatedNumberScheduled') },
    { name: 'Available', cell: count('numberAvailable') },
    ...CONTAINERS,
    SELECTOR,
  ],
  Job: [
    { name: 'Status', cell: jobState },
    {
      name: 'Completions',
      cell: (job) =>
        `${numberField(statusOf(job), 'succeeded')}/${numberField(specOf(job), 'completions', 1)}`,
    },
  ],
  PodDisruptionBudget: [
    { name: 'Min Available', cell: (one) => specOf(one)['minAvailable'] ?? 'N/A' },
    { name: 'Max Unavailable', cell: (one) => specOf(one)['maxUnavailable'] ?? 'N/A' },
    { name: 'Allowed Disruptions', cell: count('disruptionsAllowed') },
  ],
  PersistentVolumeClaim: [
    { name: 'Status', cell: status('phase') },
    { name: 'Volume', cell: (claim) => textField(specOf(claim), 'volumeName') },
    { name: 'StorageClass', cell: (claim) => textField(specOf(claim), 'storageClassName') },
  ],
  PersistentVolume: [
    { name: 'Status', cell: status('phase') },
    { name: 'Claim', cell: claimOfVolume },
    { name: 'StorageClass', cell: (volume) => textField(specOf(volume), 'storageClassName') },
  ],
  Event: [
    { name: 'Last Seen', cell: (event, now) => formatAge(lastSeen(event), now) },
    { name: 'Type', cell: field('type') },
    { name: 'Reason', cell: field('reason') },
    { name: 'Object', cell: eventObject },
    { name: 'Message', cell: (event) => textField(event, 'message') || textField(event, 'note') },
    { ...NAME, isWide: true },
  ],
  CertificateSigningRequest: [
    NAME,
    AGE,
    { name: 'SignerName', cell: (request) => textField(specOf(request), 'signerName') },
    { name: 'Requestor', cell: (request) => textField(specOf(request), 'username') },
    { name: 'Condition', cell: requestState },
  ],
  Lease: [{ name: 'Holder', cell: (lease) => textField(specOf(lease), 'holderIdentity') }],
  Secret: [
    { name: 'Type', cell: field('type') },
    { name: 'Data', cell: countData },
  ],
  ConfigMap: [{ name: 'Data', cell: countData }],
  Service: [
    { name: 'Type', cell: (service) => textField(specOf(service), 'type') || 'ClusterIP' },
    { name: 'Cluster-IP', cell: (service) => textField(specOf(service), 'clusterIP') || '<none>' },
    { name: 'External-IP', cell: () => '<none>' },
    { name: 'Port(s)', cell: servicePorts },
  ],
  CustomResourceDefinition: [
    NAME,
    { name: 'Created At', cell: ({ metadata }) => metadata.creationTimestamp },
  ],
  PriorityClass: [
    { name: 'Value', cell: (priority) => numberField(priority, 'value') },
    { name: 'Global-Default', cell: (priority) => priority['globalDefault'] === true },
  ],
};

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function isTableRequested(accept: string): boolean {
  return accept.includes('as=Table');
}

export function buildTable(
  objects: readonly SimObject[],
  metadata: JsonObject,
  { resource, includeObject, now }: TableOptions,
): JsonObject {
  const { custom, kind } = resource;
  const columns = custom === undefined ? columnsOf(kind) : customColumns(custom);
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: columns.map(
      ({ name: title, isWide, type = 'string', description = '' }) => ({
        name: title,
        type,
        format: title === 'Name' ? 'name' : '',
        description,
        priority: isWide === true ? 1 : 0,
      }),
    ),
    rows: objects.map((object) => ({
      cells: columns.map(({ cell }) => cell(object, now)),
      object: includeObject === 'Object' ? object : toPartialMetadata(object),
    })),
  };
}

function columnsOf(kind: string): readonly Column[] {
  const own = COLUMNS[kind] ?? [];
  // A table of events begins with their time.
  if (own.some(({ name }) => name === NAME.name)) return own;
  const isShown = ({ isWide }: Column) => isWide !== true;
  return [NAME, ...own.filter(isShown), AGE, ...own.filter((column) => !isShown(column))];
}

/** The name and the columns of the definition; without such columns the age. */
function customColumns({ columns }: CustomResource): readonly Column[] {
  if (columns.length === 0) return [NAME, { ...AGE, type: 'date' }];
  return [NAME, ...columns.map(customColumn)];
}

function customColumn({ jsonPath, type, priority, ...rest }: PrinterColumn): Column {
  const read = parseJsonPath(jsonPath) ?? (() => []);
  return {
    ...rest,
    type,
    isWide: priority !== 0,
    cell: (object, now) => {
      const [value, ...others] = read(object);
      if (value === undefined) return null;
      if (type === 'date') return typeof value === 'string' ? formatAge(value, now) : '<invalid>';
      if (type !== 'string' || others.length > 0) return value;
      return typeof value === 'string' ? value : JSON.stringify(value);
    },
  };
}

export function toPartialMetadata({ metadata }: SimObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}

/** As kubectl shows durations: two units below ten minutes, hours and days, else one. */
function formatAge(since: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1_000));
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  const minutes = Math.floor(seconds / MINUTE);
  if (seconds < 10 * MINUTE)
    return `${minutes}m${seconds % MINUTE || ''}${seconds % MINUTE ? 's' : ''}`;
  if (seconds < 3 * HOUR) return `${minutes}m`;
  const hours = Math.floor(seconds / HOUR);
  return seconds < 2 * DAY ? `${hours}h` : `${Math.floor(seconds / DAY)}d`;
}

function readyContainers(pod: SimObject): string {
  const statuses = listField(statusOf(pod), 'containerStatuses');
  const ready = statuses.filter((one) => one['ready'] === true).length;
  return `${ready}/${listField(specOf(pod), 'containers').length}`;
}

function podState(pod: SimObject): string {
  if (isTerminating(pod)) return 'Terminating';
  const phase = textField(statusOf(pod), 'phase');
  if (phase === 'Succeeded') return 'Completed';
  const isCreating = phase === 'Pending' && textField(specOf(pod), 'nodeName') !== '';
  return isCreating ? 'ContainerCreating' : phase;
}

function nodeState(node: SimObject): string {
  const ready = conditionOf(node, 'Ready')?.['status'];
  const state = ready === 'True' ? 'Ready' : 'NotReady';
  return specOf(node)['unschedulable'] === true ? `${state},SchedulingDisabled` : state;
}

function nodeRoles(node: SimObject): string {
  const prefix = 'node-role.kubernetes.io/';
  const roles = Object.keys(labelsOf(node)).filter((key) => key.startsWith(prefix));
  return roles.map((key) => key.slice(prefix.length)).join(',') || '<none>';
}

function nodeAddress(type: string): (node: SimObject) => string {
  return (node) => {
    const found = listField(statusOf(node), 'addresses').find((one) => one['type'] === type);
    return found === undefined ? '<none>' : textField(found, 'address');
  };
}

function templateContainers(key: string): (object: SimObject) => string {
  return (object) => {
    const pod = objectField(objectField(specOf(object), 'template'), 'spec');
    return listField(pod, 'containers')
      .map((one) => textField(one, key))
      .join(',');
  };
}

function formatSelector(object: SimObject): string {
  const labels = objectField(objectField(specOf(object), 'selector'), 'matchLabels');
  return Object.keys(labels)
    .map((key) => `${key}=${textField(labels, key)}`)
    .join(',');
}

function lastSeen(event: SimObject): string {
  const { metadata, series } = event;
  return (
    textField(objectField({ series: series ?? {} }, 'series'), 'lastObservedTime') ||
    textField(event, 'lastTimestamp') ||
    textField(event, 'eventTime') ||
    metadata.creationTimestamp
  );
}

function readyReplicas(object: SimObject): string {
  const wanted = numberField(specOf(object), 'replicas', 1);
  return `${numberField(statusOf(object), 'readyReplicas')}/${wanted}`;
}

function countData(object: SimObject): number {
  return Object.keys(objectField(object, 'data')).length;
}

function servicePorts(service: SimObject): string {
  const ports = listField(specOf(service), 'ports').map(
    (one) => `${numberField(one, 'port')}/${textField(one, 'protocol') || 'TCP'}`,
  );
  return ports.join(',') || '<none>';
}

function jobState(job: SimObject): string {
  const met = (type: string) => conditionOf(job, type)?.['status'] === 'True';
  if (met('Complete')) return 'Complete';
  return met('Failed') ? 'Failed' : 'Running';
}

function claimOfVolume(volume: SimObject): string {
  const claim = objectField(specOf(volume), 'claimRef');
  const name = textField(claim, 'name');
  return name === '' ? '' : `${textField(claim, 'namespace')}/${name}`;
}

function eventObject(event: SimObject): string {
  const { involvedObject, regarding } = event;
  const object = objectField({ object: involvedObject ?? regarding }, 'object');
  return `${textField(object, 'kind').toLowerCase()}/${textField(object, 'name')}`;
}

function requestState(request: SimObject): string {
  const types = listField(statusOf(request), 'conditions').map((one) => textField(one, 'type'));
  const hasCertificate = textField(statusOf(request), 'certificate') !== '';
  return [...types, ...(hasCertificate ? ['Issued'] : [])].join(',') || 'Pending';
}
