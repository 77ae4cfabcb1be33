// SPDX-License-Identifier: Apache-2.0
// The kinds and fields that `kubectl create KIND` sets, with the field numbers of the generated.proto files of k8s.io/api.

export type Scalar =
  | 'text'
  | 'number'
  /** A pointer: zero is a value. */
  | 'set-number'
  | 'flag'
  | 'texts'
  | 'text-map'
  | 'bytes-map'
  | 'int-or-string';
export type FieldType = Scalar | Message | readonly [Message];
export interface Message {
  readonly [number: number]: readonly [name: string, type: FieldType];
}

export const METADATA: Message = {
  1: ['name', 'text'],
  2: ['generateName', 'text'],
  3: ['namespace', 'text'],
  11: ['labels', 'text-map'],
  12: ['annotations', 'text-map'],
  14: ['finalizers', 'texts'],
};
const SELECTOR: Message = { 1: ['matchLabels', 'text-map'] };
const CONTAINER: Message = {
  1: ['name', 'text'],
  2: ['image', 'text'],
  3: ['command', 'texts'],
  4: ['args', 'texts'],
  6: ['ports', [{ 1: ['name', 'text'], 3: ['containerPort', 'number'], 4: ['protocol', 'text'] }]],
  8: ['resources', {}],
  14: ['imagePullPolicy', 'text'],
};
const POD_SPEC: Message = {
  2: ['containers', [CONTAINER]],
  3: ['restartPolicy', 'text'],
  8: ['serviceAccountName', 'text'],
};
const TEMPLATE: Message = { 1: ['metadata', METADATA], 2: ['spec', POD_SPEC] };
const DEPLOYMENT_SPEC: Message = {
  1: ['replicas', 'set-number'],
  2: ['selector', SELECTOR],
  3: ['template', TEMPLATE],
};
const BUDGET_SPEC: Message = {
  1: ['minAvailable', 'int-or-string'],
  2: ['selector', SELECTOR],
  3: ['maxUnavailable', 'int-or-string'],
};

const SERVICE_PORT: Message = {
  1: ['name', 'text'],
  2: ['protocol', 'text'],
  3: ['port', 'number'],
  4: ['targetPort', 'int-or-string'],
  5: ['nodePort', 'number'],
};
const SERVICE_SPEC: Message = {
  1: ['ports', [SERVICE_PORT]],
  2: ['selector', 'text-map'],
  3: ['clusterIP', 'text'],
  4: ['type', 'text'],
  10: ['externalName', 'text'],
};
const RULE: Message = {
  1: ['verbs', 'texts'],
  2: ['apiGroups', 'texts'],
  3: ['resources', 'texts'],
  4: ['resourceNames', 'texts'],
  5: ['nonResourceURLs', 'texts'],
};
const ROLE: Message = { 2: ['rules', [RULE]] };
const SUBJECT: Message = {
  1: ['kind', 'text'],
  2: ['apiGroup', 'text'],
  3: ['name', 'text'],
  4: ['namespace', 'text'],
};
const BINDING: Message = {
  2: ['subjects', [SUBJECT]],
  3: ['roleRef', { 1: ['apiGroup', 'text'], 2: ['kind', 'text'], 3: ['name', 'text'] }],
};
const RESOURCE_ATTRIBUTES: Message = {
  1: ['namespace', 'text'],
  2: ['verb', 'text'],
  3: ['group', 'text'],
  4: ['version', 'text'],
  5: ['resource', 'text'],
  6: ['subresource', 'text'],
  7: ['name', 'text'],
};
const ACCESS_REVIEW_SPEC: Message = {
  1: ['resourceAttributes', RESOURCE_ATTRIBUTES],
  2: ['nonResourceAttributes', { 1: ['path', 'text'], 2: ['verb', 'text'] }],
};
const RBAC = 'rbac.authorization.k8s.io/v1';

export const KINDS: Readonly<Record<string, Message>> = {
  'v1 Namespace': {},
  'v1 ServiceAccount': {},
  'v1 ConfigMap': { 2: ['data', 'text-map'], 3: ['binaryData', 'bytes-map'] },
  'v1 Secret': { 2: ['data', 'bytes-map'], 3: ['type', 'text'] },
  'apps/v1 Deployment': { 2: ['spec', DEPLOYMENT_SPEC] },
  'batch/v1 Job': { 2: ['spec', { 6: ['template', TEMPLATE] }] },
  'policy/v1 PodDisruptionBudget': { 2: ['spec', BUDGET_SPEC] },
  'v1 Service': { 2: ['spec', SERVICE_SPEC] },
  [`${RBAC} Role`]: ROLE,
  [`${RBAC} ClusterRole`]: ROLE,
  [`${RBAC} RoleBinding`]: BINDING,
  [`${RBAC} ClusterRoleBinding`]: BINDING,
  'authorization.k8s.io/v1 SelfSubjectAccessReview': { 2: ['spec', ACCESS_REVIEW_SPEC] },
  'authorization.k8s.io/v1 SelfSubjectRulesReview': { 2: ['spec', { 1: ['namespace', 'text'] }] },
  'authentication.k8s.io/v1 SelfSubjectReview': {},
  'scheduling.k8s.io/v1 PriorityClass': {
    2: ['value', 'number'],
    3: ['globalDefault', 'flag'],
    4: ['description', 'text'],
    5: ['preemptionPolicy', 'text'],
  },
};
