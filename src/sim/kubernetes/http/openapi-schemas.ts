// SPDX-License-Identifier: Apache-2.0
// Schemas for `kubectl explain`: of every kind its parts, and of workloads and nodes the fields that the simulator acts on.
import { objectField } from '../storage/objects.ts';
import { type Resource, splitApiVersion } from '../storage/resources.ts';

type Fields = Readonly<Record<string, readonly [type: string, description: string]>>;

const SIMULATED = 'The simulator stores every other field without acting on it.';

const POD_SPEC: Fields = {
  affinity: ['object', 'Required node affinity, pod affinity and pod anti-affinity.'],
  containers: ['array', 'Containers; their resource requests decide where the pod fits.'],
  initContainers: ['array', 'Containers that run first; their requests count too.'],
  nodeName: ['string', 'The node that the pod is bound to.'],
  nodeSelector: ['object', 'Labels that the node must have.'],
  priorityClassName: ['string', 'Name of the PriorityClass.'],
  restartPolicy: ['string', 'Always, OnFailure or Never.'],
  terminationGracePeriodSeconds: ['integer', 'Time between deletion and end of the pod.'],
  tolerations: ['array', 'Taints of nodes that do not keep the pod away.'],
  topologySpreadConstraints: ['array', 'How pods are spread over zones or nodes.'],
  volumes: ['array', 'Volumes; claims restrict the nodes where the pod can run.'],
};
const SELECTOR = ['object', 'Labels of the pods that belong to it.'] as const;
const REPLICAS = ['integer', 'Number of pods that should run.'] as const;
const TEMPLATE = ['object', 'The pods that are created from it.'] as const;

const SPECS: Readonly<Record<string, Fields>> = {
  Pod: POD_SPEC,
  Deployment: {
    replicas: REPLICAS,
    selector: SELECTOR,
    strategy: ['object', 'How pods are replaced: RollingUpdate or Recreate.'],
    template: TEMPLATE,
  },
  ReplicaSet: { replicas: REPLICAS, selector: SELECTOR, template: TEMPLATE },
  StatefulSet: {
    replicas: REPLICAS,
    selector: SELECTOR,
    template: TEMPLATE,
    volumeClaimTemplates: ['array', 'Claims that are created for each pod.'],
  },
  DaemonSet: { selector: SELECTOR, template: TEMPLATE },
  Job: {
    completions: ['integer', 'Number of pods that must succeed.'],
    parallelism: ['integer', 'Number of pods that run at a time.'],
    backoffLimit: ['integer', 'Number of failures after which the job fails.'],
    template: TEMPLATE,
  },
  Node: {
    providerID: ['string', 'The machine of the node, for instance proxmox://REGION/VMID.'],
    taints: ['array', 'Keep pods away that do not tolerate them.'],
    unschedulable: ['boolean', 'Set by kubectl cordon: no new pods.'],
  },
  PodDisruptionBudget: {
    maxUnavailable: ['string', 'Number or percentage of pods that may be unavailable.'],
    minAvailable: ['string', 'Number or percentage of pods that must stay available.'],
    selector: SELECTOR,
  },
};

const OBJECT: Fields = {
  apiVersion: ['string', 'Group and version of the kind.'],
  kind: ['string', 'The kind of the object.'],
  metadata: ['object', 'Name, namespace, labels, annotations, owners and finalizers.'],
};

function properties(fields: Fields): object {
  return Object.fromEntries(
    Object.entries(fields).map(([name, [type, description]]) => [
      name,
      type === 'array' ? { type, description, items: { type: 'object' } } : { type, description },
    ]),
  );
}

/** Name and schema of the kind. */
export function describeKind(resource: Resource): readonly [string, object] {
  const { apiVersion, kind, hasStatus, custom } = resource;
  const { group, version } = splitApiVersion(apiVersion);
  const name = [...group.split('.').toReversed(), version, kind].filter(Boolean).join('.');
  const groupVersionKind = { 'x-kubernetes-group-version-kind': [{ group, version, kind }] };
  if (custom !== undefined) {
    const { source } = custom.schema;
    const own = { ...properties(OBJECT), ...objectField(source, 'properties') };
    return [name, { ...source, properties: own, ...groupVersionKind }];
  }
  const own = SPECS[kind];
  const spec = {
    type: 'object',
    description: own === undefined ? SIMULATED : `What is wanted. ${SIMULATED}`,
    ...(own !== undefined && { properties: properties(own) }),
  };
  const status = { type: 'object', description: 'What is, as controllers and kubelets report it.' };
  return [
    name,
    {
      type: 'object',
      description: `${kind} of ${apiVersion}, as the simulated cluster knows it.`,
      properties: {
        ...properties(OBJECT),
        ...((own !== undefined || hasStatus) && { spec }),
        ...(hasStatus && { status }),
      },
      ...groupVersionKind,
    },
  ];
}
