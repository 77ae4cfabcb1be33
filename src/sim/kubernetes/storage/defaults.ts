// SPDX-License-Identifier: Apache-2.0
// What the API server and its admission plugins add to new objects: defaults, priority, tolerations, initial status.
import { withPodDefaults } from '../../../model/pod-defaults.ts';
import { defaultDefinition } from './definitions.ts';
import type { ObjectStore } from './object-store.ts';
import { type JsonObject, listField, objectField, textField, textMap } from './objects.ts';
import { PRIORITY_CLASSES, type Resource } from './resources.ts';
import { conformObject } from './structural-schema.ts';

type Defaulter = (body: JsonObject, store: ObjectStore) => JsonObject;

const DEFAULT_GRACE_SECONDS = 30;
const TOLERATION_SECONDS = 300;
const SYSTEM_PRIORITIES: Readonly<Record<string, number>> = {
  'system-node-critical': 2_000_001_000,
  'system-cluster-critical': 2_000_000_000,
};

const DEFAULTERS: ReadonlyMap<string, Defaulter> = new Map<string, Defaulter>([
  ['Pod', defaultPod],
  ['Namespace', defaultNamespace],
  ['Deployment', (body) => defaultDeployment(defaultTemplate(defaultSelector(body)))],
  ['ReplicaSet', (body) => withSpec(defaultTemplate(defaultSelector(body)), { replicas: 1 })],
  ['StatefulSet', (body) => defaultStatefulSet(defaultTemplate(body))],
  ['DaemonSet', (body) => defaultDaemonSet(defaultTemplate(body))],
  ['Job', defaultJob],
  ['Service', (body) => withSpec(body, { type: 'ClusterIP', sessionAffinity: 'None' })],
  ['PersistentVolumeClaim', (body) => withInitialStatus(body, { phase: 'Pending' })],
  ['PersistentVolume', defaultVolume],
  ['StorageClass', defaultStorageClass],
  ['Secret', defaultSecret],
  ['CustomResourceDefinition', defaultDefinition],
  ['PriorityClass', (body) => ({ preemptionPolicy: 'PreemptLowerPriority', ...body })],
]);

export function withDefaults(resource: Resource, body: JsonObject, store: ObjectStore): JsonObject {
  if (resource.custom !== undefined) return conformObject(resource.custom.schema, body);
  return DEFAULTERS.get(resource.kind)?.(body, store) ?? body;
}

function withSpec(body: JsonObject, defaults: JsonObject): JsonObject {
  return { ...body, spec: { ...defaults, ...objectField(body, 'spec') } };
}

function withInitialStatus(body: JsonObject, status: JsonObject): JsonObject {
  return { ...body, status: { ...status, ...objectField(body, 'status') } };
}

function defaultPod(body: JsonObject, store: ObjectStore): JsonObject {
  const spec = defaultPodSpec(objectField(body, 'spec'));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the function keeps what it does not know
  const requested = withPodDefaults(spec) as JsonObject;
  const { initContainers = [], ...rest } = requested;
  const hasInitContainers = Array.isArray(initContainers) && initContainers.length > 0;
  const admitted = {
    ...rest,
    ...(hasInitContainers && { initContainers }),
    priority: findPriority(spec, store),
    tolerations: withNodeTolerations(listField(spec, 'tolerations')),
  };
  const status = { phase: 'Pending', qosClass: qosClassOf(admitted) };
  return withInitialStatus({ ...body, spec: admitted }, status);
}

function defaultPodSpec(spec: JsonObject): JsonObject {
  return {
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: DEFAULT_GRACE_SECONDS,
    dnsPolicy: 'ClusterFirst',
    securityContext: {},
    schedulerName: 'default-scheduler',
    serviceAccountName: 'default',
    enableServiceLinks: true,
    ...spec,
  };
}

function findPriority(spec: JsonObject, store: ObjectStore): number {
  const name = textField(spec, 'priorityClassName');
  const classes = store.list(PRIORITY_CLASSES);
  const found = classes.find((one) =>
    name === '' ? one['globalDefault'] === true : one.metadata.name === name,
  );
  const value = found?.['value'];
  return typeof value === 'number' ? value : (SYSTEM_PRIORITIES[name] ?? 0);
}

/** The admission plugin DefaultTolerationSeconds. */
function withNodeTolerations(given: readonly JsonObject[]): readonly JsonObject[] {
  const added = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].filter(
    (key) =>
      !given.some(
        (one) =>
          (one['key'] === key || textField(one, 'key') === '') &&
          ['', 'NoExecute'].includes(textField(one, 'effect')),
      ),
  );
  return [
    ...given,
    ...added.map((key) => ({
      key,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: TOLERATION_SECONDS,
    })),
  ];
}

function qosClassOf(spec: JsonObject): string {
  const containers = [...listField(spec, 'containers'), ...listField(spec, 'initContainers')];
  const parts = containers.map((one) => {
    const resources = objectField(one, 'resources');
    return [objectField(resources, 'requests'), objectField(resources, 'limits')] as const;
  });
  const names = ['cpu', 'memory'];
  if (parts.every((pair) => pair.every((one) => names.every((name) => one[name] === undefined)))) {
    return 'BestEffort';
  }
  const isGuaranteed = parts.every(([requests, limits]) =>
    names.every((name) => limits[name] !== undefined && limits[name] === requests[name]),
  );
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}

function defaultNamespace(body: JsonObject): JsonObject {
  const metadata = objectField(body, 'metadata');
  const name = textField(metadata, 'name');
  const labels = { ...objectField(metadata, 'labels'), 'kubernetes.io/metadata.name': name };
  return withInitialStatus(
    { ...body, metadata: { ...metadata, labels }, spec: { finalizers: ['kubernetes'] } },
    { phase: 'Active' },
  );
}

function defaultTemplate(body: JsonObject): JsonObject {
  const spec = objectField(body, 'spec');
  const template = objectField(spec, 'template');
  const podSpec = defaultPodSpec(objectField(template, 'spec'));
  // The service account is only added to pods.
  const { serviceAccountName, enableServiceLinks: _added, ...rest } = podSpec;
  const given = objectField(template, 'spec')['serviceAccountName'];
  const templateSpec = { ...rest, ...(given !== undefined && { serviceAccountName }) };
  return { ...body, spec: { ...spec, template: { ...template, spec: templateSpec } } };
}

/** Only `apps/v1beta1` derives the selector from the template; a missing one is kept empty here. */
function defaultSelector(body: JsonObject): JsonObject {
  return withSpec(body, { selector: {} });
}

function defaultDeployment(body: JsonObject): JsonObject {
  const strategy = objectField(objectField(body, 'spec'), 'strategy');
  const type = textField(strategy, 'type') || 'RollingUpdate';
  const rollingUpdate = {
    maxSurge: '25%',
    maxUnavailable: '25%',
    ...objectField(strategy, 'rollingUpdate'),
  };
  const complete = type === 'Recreate' ? { type } : { type, rollingUpdate };
  const defaults = { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 };
  const { spec, ...rest } = withSpec(body, defaults);
  return { ...rest, spec: { ...objectField({ spec }, 'spec'), strategy: complete } };
}

function defaultStatefulSet(body: JsonObject): JsonObject {
  return withSpec(body, {
    replicas: 1,
    podManagementPolicy: 'OrderedReady',
    revisionHistoryLimit: 10,
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
  });
}

function defaultDaemonSet(body: JsonObject): JsonObject {
  return withSpec(body, {
    revisionHistoryLimit: 10,
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
  });
}

const DEFAULT_BACKOFF_LIMIT = 6;

function defaultJob(body: JsonObject): JsonObject {
  const spec = objectField(body, 'spec');
  // A work queue: its completions are not defaulted when only the parallelism is given.
  const completions = spec['parallelism'] === undefined ? { completions: 1 } : {};
  return withSpec(defaultTemplate(body), {
    parallelism: 1,
    ...completions,
    backoffLimit: DEFAULT_BACKOFF_LIMIT,
    completionMode: 'NonIndexed',
    suspend: false,
  });
}

function defaultVolume(body: JsonObject): JsonObject {
  const defaults = { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' };
  return withInitialStatus(withSpec(body, defaults), { phase: 'Available' });
}

function defaultStorageClass(body: JsonObject): JsonObject {
  return { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate', ...body };
}

/** `stringData` is written as `data`. */
function defaultSecret(body: JsonObject): JsonObject {
  const { stringData, ...rest } = body;
  const texts = Object.entries(textMap({ stringData }, 'stringData')).map(([key, text]) => [
    key,
    Buffer.from(text).toString('base64'),
  ]);
  return {
    type: 'Opaque',
    ...rest,
    ...(texts.length > 0 && {
      data: { ...objectField(rest, 'data'), ...Object.fromEntries(texts) },
    }),
  };
}
