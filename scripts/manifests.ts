// SPDX-License-Identifier: Apache-2.0
// Renders the RBAC and admission manifests and the reference of rights from the table in src/kubernetes/rights.ts.
import { parse, stringify } from 'yaml';
import { MANAGED_BY_LABEL, RIGHTS, type Right, SERVICE_ACCOUNT } from '../src/kubernetes/index.ts';
import { MAX_BOOTSTRAP_TOKEN_MS } from '../src/ports/cluster.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
const ADMISSION = 'admissionregistration.k8s.io/v1';
const HEADER = '# Made by `npm run gen`; do not edit.\n';
const LABELS = { 'app.kubernetes.io/name': 'pvescaler' };
const SUBJECT = { kind: 'ServiceAccount', ...SERVICE_ACCOUNT };

export function renderRbacManifest(): string {
  const { namespace: name } = SERVICE_ACCOUNT;
  return documents([
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: LABELS } },
    ...accountWithRights(),
  ]);
}

/** The same objects as a template of the chart, where the release chooses name and namespace. */
export function renderRbacTemplate(): string {
  return template('.Values.rbac.create', accountWithRights());
}

export function renderAdmissionTemplate(): string {
  return template('.Values.admissionPolicy.enabled', policiesWithRoles());
}

/** The rights for records in the cluster. */
export function renderStateRole(): string {
  return documents(stateRole());
}

export function renderStateRoleTemplate(): string {
  return template('and .Values.rbac.create (eq .Values.state "kubernetes")', stateRole());
}

/** The alerts of the chart for the Prometheus operator without Helm. */
export function renderPrometheusRule(alerts: string): string {
  const metadata = { ...SERVICE_ACCOUNT, labels: LABELS };
  const apiVersion = 'monitoring.coreos.com/v1';
  return documents([{ apiVersion, kind: 'PrometheusRule', metadata, spec: parse(alerts) }]);
}

/** Nothing else in the text contains two braces, which begin a Go template. */
function template(condition: string, objects: readonly object[]): string {
  const name = '{{ include `pvescaler.name` . }}';
  const text = yaml(objects)
    .replaceAll(/^( *name: )pvescaler(-bootstrap-token.*|-kube-system|-state)?$/gm, `$1"${name}$2"`)
    .replaceAll(/^( *policyName: )pvescaler(.*)$/gm, `$1"${name}$2"`)
    .replaceAll(/^( *namespace: )pvescaler$/gm, '$1"{{ .Release.Namespace }}"')
    .replaceAll(
      `serviceaccount:${SERVICE_ACCOUNT.namespace}:${SERVICE_ACCOUNT.name}`,
      `serviceaccount:{{ .Release.Namespace }}:${name}`,
    )
    .replaceAll(
      /^( *)app\.kubernetes\.io\/name: pvescaler$/gm,
      (_, indent: string) => `{{- include "pvescaler.labels" . | nindent ${indent.length} }}`,
    );
  return `${HEADER}{{- if ${condition} }}\n${text}{{- end }}\n`;
}

function accountWithRights(): readonly object[] {
  const namespaces = new Set(RIGHTS.flatMap(({ namespace }) => namespace ?? []));
  const metadata = { ...SERVICE_ACCOUNT, labels: LABELS };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    ...roleAndBinding(undefined),
    ...[...namespaces].flatMap(roleAndBinding),
  ];
}

function roleAndBinding(namespace: string | undefined): readonly object[] {
  const prefix = namespace === undefined ? 'Cluster' : '';
  const { name } = SERVICE_ACCOUNT;
  const isOwn = namespace === undefined || namespace === SERVICE_ACCOUNT.namespace;
  const metadata = {
    // A release in kube-system has both Roles in one namespace.
    name: isOwn ? name : `${name}-${namespace}`,
    ...(namespace !== undefined && { namespace }),
    labels: LABELS,
  };
  const own = RIGHTS.filter((right) => right.needsPolicy === undefined && !right.isForState);
  return bound(
    `${prefix}Role`,
    metadata,
    own.filter((right) => right.namespace === namespace),
  );
}

function stateRole(): readonly object[] {
  const { namespace } = SERVICE_ACCOUNT;
  const metadata = { name: 'pvescaler-state', namespace, labels: LABELS };
  return bound(
    'Role',
    metadata,
    RIGHTS.filter(({ isForState }) => isForState === true),
  );
}

/** Granted by the manifest of the policy, so that a cluster without it does not grant them either. */
function rolesWithPolicy(name: string): readonly object[] {
  const rights = RIGHTS.filter(({ needsPolicy }) => needsPolicy === true);
  const namespaces = new Set(rights.flatMap(({ namespace }) => namespace ?? []));
  return [...namespaces].flatMap((namespace) =>
    bound(
      'Role',
      { name, namespace, labels: LABELS },
      rights.filter((right) => right.namespace === namespace),
    ),
  );
}

function bound(
  kind: string,
  metadata: { readonly name: string; readonly namespace?: string; readonly labels: object },
  rights: readonly Right[],
): readonly object[] {
  const role = { apiGroup: 'rbac.authorization.k8s.io', kind, name: metadata.name };
  return [
    { apiVersion: RBAC, kind, metadata, rules: rights.map(ruleOf) },
    {
      apiVersion: RBAC,
      kind: `${kind}Binding`,
      metadata,
      roleRef: role,
      subjects: [SUBJECT],
    },
  ];
}

function ruleOf({ group, resource, verbs, names }: Right): object {
  return {
    apiGroups: [group],
    resources: [resource],
    ...(names && { resourceNames: names }),
    verbs,
  };
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
/** The characters of a timestamp, from code 45 on: `-./0123456789:;<=>?@A…Z`. */
const FIRST_CODE = 45;
const LETTERS = Array.from({ length: 46 }, (_, index) =>
  String.fromCharCode(FIRST_CODE + index),
).join('');

/** CEL in admission policies cannot decode Base64, so the expressions decode it by arithmetic: 28 letters are 20 bytes. */
const VARIABLES = [
  {
    name: 'expiration',
    expression: "'data' in object && 'expiration' in object.data ? object.data['expiration'] : ''",
  },
  {
    name: 'isInstant',
    expression: "variables.expiration.matches('^[A-Za-z0-9+/]{27}=$')",
  },
  {
    name: 'sextets',
    expression: `variables.expiration.split('').map(c, c == '=' ? 0 : '${BASE64}'.indexOf(c))`,
  },
  {
    name: 'triples',
    expression: [
      '[0, 4, 8, 12, 16, 20, 24].map(i,',
      'variables.sextets[i] * 262144 + variables.sextets[i + 1] * 4096',
      '+ variables.sextets[i + 2] * 64 + variables.sextets[i + 3])',
    ].join(' '),
  },
  {
    name: 'instant',
    expression: [
      'variables.triples.map(n,',
      `${letter('n / 65536')} + ${letter('(n / 256) % 256')}`,
      `+ (n % 256 == 0 ? '' : ${letter('n % 256')})).join('')`,
    ].join(' '),
  },
];

function letter(code: string): string {
  return `'${LETTERS}'.charAt(${code} - ${FIRST_CODE})`;
}

export function renderAdmissionManifest(): string {
  return documents(policiesWithRoles());
}

function policiesWithRoles(): readonly object[] {
  const name = 'pvescaler-bootstrap-tokens';
  return [
    ...policy(name, ['CREATE', 'UPDATE'], creationChecks()),
    ...policy('pvescaler-bootstrap-token-deletion', ['DELETE'], deletionChecks()),
    ...rolesWithPolicy(name),
  ];
}

function policy(name: string, operations: readonly string[], checks: object): readonly object[] {
  const user = `system:serviceaccount:${SERVICE_ACCOUNT.namespace}:${SERVICE_ACCOUNT.name}`;
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations, resources: ['secrets'] };
  return [
    {
      apiVersion: ADMISSION,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name, labels: LABELS },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: { resourceRules: [rule] },
        matchConditions: [
          { name: 'by-pvescaler', expression: `request.userInfo.username == '${user}'` },
        ],
        ...checks,
      },
    },
    {
      apiVersion: ADMISSION,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name, labels: LABELS },
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  ];
}

function creationChecks(): object {
  const seconds = MAX_BOOTSTRAP_TOKEN_MS / 1_000;
  return {
    variables: VARIABLES,
    validations: [
      {
        expression:
          "object.metadata.namespace == 'kube-system' && object.type == 'bootstrap.kubernetes.io/token'",
        message: 'pvescaler creates bootstrap tokens in kube-system, and no other Secret',
      },
      {
        expression: 'variables.isInstant',
        message: 'a bootstrap token of pvescaler has an expiration such as 2026-01-31T12:00:00Z',
      },
      {
        expression: [
          '!variables.isInstant ||',
          'timestamp(variables.instant) - timestamp(object.metadata.creationTimestamp)',
          `<= duration('${seconds}s')`,
        ].join(' '),
        message: 'a bootstrap token of pvescaler lasts an hour at most',
      },
    ],
  };
}

function deletionChecks(): object {
  return {
    validations: [
      {
        expression: [
          "oldObject.metadata.namespace == 'kube-system'",
          "oldObject.type == 'bootstrap.kubernetes.io/token'",
          'has(oldObject.metadata.labels)',
          ...Object.entries(MANAGED_BY_LABEL).map(
            ([key, value]) =>
              `'${key}' in oldObject.metadata.labels && oldObject.metadata.labels['${key}'] == '${value}'`,
          ),
        ].join(' && '),
        message: 'pvescaler deletes bootstrap tokens that it created, and no other Secret',
      },
    ],
  };
}

export function renderRightsReference(): string {
  const rows = RIGHTS.map(({ group, resource, verbs, names, namespace, why }) =>
    [
      `\`${resource}\`${group === '' ? '' : ` (${group})`}`,
      verbs.map((verb) => `\`${verb}\``).join(', '),
      namespace === undefined ? 'the whole cluster' : `namespace \`${namespace}\``,
      names === undefined ? 'all' : names.map((name) => `\`${name}\``).join(', '),
      why,
    ].join(' | '),
  );
  return [
    '<!-- Generated by `npm run gen`; do not edit. -->',
    '# Rights in Kubernetes',
    '',
    'The RBAC rights that pvescaler needs. `deploy/manifests/rbac.yaml`, the Role in',
    '`deploy/manifests/admission-policy.yaml` and, for `state.kubernetes`, `deploy/kubernetes-state/role.yaml` grant exactly these to the',
    `service account \`${SERVICE_ACCOUNT.namespace}/${SERVICE_ACCOUNT.name}\`; the admission policy in the second file (Kubernetes 1.30 or newer) limits the`,
    'Secrets it creates to bootstrap tokens of at most an hour, and those it deletes to its own tokens.',
    '',
    '| resource | verbs | scope | objects | purpose |',
    '|---|---|---|---|---|',
    ...rows.map((row) => `| ${row} |`),
    '',
  ].join('\n');
}

function documents(objects: readonly object[]): string {
  return HEADER + yaml(objects);
}

function yaml(objects: readonly object[]): string {
  return objects
    .map((one) => stringify(one, { lineWidth: 0, aliasDuplicateObjects: false }))
    .join('---\n');
}
