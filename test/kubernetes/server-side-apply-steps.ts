// SPDX-License-Identifier: Apache-2.0
// Server-side apply requests and the expected responses, recorded from a real API server. The tests run the same steps
// on the simulator and on a real API server.
import { readText } from '../../src/ports/contract/transport.contract.ts';
import type { Transport, TransportRequest } from '../../src/ports/transport.ts';

const ANOTHER_UID = '11111111-2222-4333-8444-555555555555';
const PROVIDER_ID = 'proxmox://lab/1';

export interface ApplyStep {
  readonly title: string;
  readonly method?: TransportRequest['method'];
  readonly manager?: string;
  readonly query?: string;
  readonly kind?: 'apply' | 'merge' | 'whole';
  /** `UID` is replaced by the uid of the created node. */
  readonly body?: object;
  readonly expected: unknown;
}

const PATHS: Readonly<Record<string, string>> = { POST: '/api/v1/nodes' };
const TYPES = {
  apply: 'application/apply-patch+yaml',
  merge: 'application/merge-patch+json',
  whole: 'application/json',
} as const;

function node(metadata: object = {}, spec?: object): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', ...metadata },
    ...(spec && { spec }),
  };
}

const nodeWithUid = (labels: object, spec: object | undefined = { providerID: PROVIDER_ID }) =>
  node({ uid: 'UID', labels }, spec);

const NO_EXISTING_OBJECT = `Operation cannot be fulfilled on nodes "n1": uid mismatch: the provided object specified uid ${ANOTHER_UID}, and no existing object was found`;
const UID_IMMUTABLE = {
  reason: 'FieldValueInvalid',
  message: `Invalid value: "${ANOTHER_UID}": field is immutable`,
  field: 'metadata.uid',
};
const PROVIDER_ID_FORBIDDEN = {
  reason: 'FieldValueForbidden',
  message: 'Forbidden: node updates may not change providerID except from "" to valid',
  field: 'spec.providerID',
};

export const APPLY_STEPS: readonly ApplyStep[] = [
  {
    title: 'an apply with a uid does not create an object',
    body: node({ uid: ANOTHER_UID, labels: { a: '1' } }),
    expected: { status: 409, reason: 'Conflict', message: NO_EXISTING_OBJECT },
  },
  {
    title: 'the rejected apply created no object',
    method: 'GET',
    expected: { status: 404, reason: 'NotFound', message: 'nodes "n1" not found' },
  },
  {
    title: 'a merge patch does not create an object',
    kind: 'merge',
    body: { metadata: { uid: ANOTHER_UID } },
    expected: { status: 404, reason: 'NotFound', message: 'nodes "n1" not found' },
  },
  {
    title: 'a create makes the manager the owner of all fields',
    method: 'POST',
    manager: 'kubelet',
    kind: 'whole',
    body: node({ labels: { k: '1', tier: 'x' } }),
    expected: {
      labels: { k: '1', tier: 'x' },
      owners: { 'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'] },
    },
  },
  {
    title: 'an apply makes the manager the owner of the applied fields',
    body: node(
      {
        uid: 'UID',
        labels: { 'node-role.kubernetes.io/worker': '' },
        annotations: { 'x.y/z': 'n' },
      },
      { providerID: PROVIDER_ID },
    ),
    expected: {
      labels: { k: '1', 'node-role.kubernetes.io/worker': '', tier: 'x' },
      annotations: { 'x.y/z': 'n' },
      providerID: PROVIDER_ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'pvescaler Apply': [
          '.metadata.annotations.x.y/z',
          '.metadata.labels.node-role.kubernetes.io/worker',
          '.spec.providerID',
        ],
      },
    },
  },
  {
    title: 'an apply with another uid and without the provider id is rejected',
    body: node({ uid: ANOTHER_UID, labels: { 'node-role.kubernetes.io/worker': '' } }),
    expected: {
      status: 422,
      reason: 'Invalid',
      message: `Node "n1" is invalid: [metadata.uid: ${UID_IMMUTABLE.message}, spec.providerID: ${PROVIDER_ID_FORBIDDEN.message}]`,
      causes: [PROVIDER_ID_FORBIDDEN, UID_IMMUTABLE],
    },
  },
  {
    title: 'a merge patch with another uid is rejected',
    kind: 'merge',
    body: { metadata: { uid: ANOTHER_UID, labels: { a: '1' } } },
    expected: {
      status: 422,
      reason: 'Invalid',
      message: `Node "n1" is invalid: metadata.uid: ${UID_IMMUTABLE.message}`,
      causes: [UID_IMMUTABLE],
    },
  },
  {
    title: 'an apply of other values for fields of another manager is a conflict',
    body: nodeWithUid({ tier: 'y', k: '2' }),
    expected: {
      status: 409,
      reason: 'Conflict',
      message:
        'Apply failed with 2 conflicts: conflicts with "kubelet" using v1:\n- .metadata.labels.k\n- .metadata.labels.tier',
      causes: ['k', 'tier'].map((key) => ({
        reason: 'FieldManagerConflict',
        message: 'conflict with "kubelet" using v1',
        field: `.metadata.labels.${key}`,
      })),
    },
  },
  {
    title: 'an apply removes omitted fields and shares ownership of equal values',
    body: nodeWithUid({ tier: 'x' }),
    expected: {
      labels: { k: '1', tier: 'x' },
      providerID: PROVIDER_ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'pvescaler Apply': ['.metadata.labels.tier', '.spec.providerID'],
      },
    },
  },
  {
    title: 'an apply keeps an omitted field that another manager owns',
    body: node({ uid: 'UID' }, { providerID: PROVIDER_ID }),
    expected: {
      labels: { k: '1', tier: 'x' },
      providerID: PROVIDER_ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'pvescaler Apply': ['.spec.providerID'],
      },
    },
  },
  {
    title: 'a second manager applies a label',
    manager: 'other',
    body: node({ labels: { both: '1' } }),
    expected: {
      labels: { both: '1', k: '1', tier: 'x' },
      providerID: PROVIDER_ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.spec.providerID'],
      },
    },
  },
  {
    title: 'a conflict with several managers lists each manager',
    body: nodeWithUid({ both: '2', k: '2' }),
    expected: {
      status: 409,
      reason: 'Conflict',
      message:
        'Apply failed with 2 conflicts: conflicts with "kubelet" using v1:\n- .metadata.labels.k\nconflicts with "other":\n- .metadata.labels.both',
      causes: [
        {
          reason: 'FieldManagerConflict',
          message: 'conflict with "kubelet" using v1',
          field: '.metadata.labels.k',
        },
        {
          reason: 'FieldManagerConflict',
          message: 'conflict with "other"',
          field: '.metadata.labels.both',
        },
      ],
    },
  },
  {
    title: 'an apply adds a label and shares another',
    body: nodeWithUid({ solo: '1', both: '1' }),
    expected: {
      labels: { both: '1', k: '1', solo: '1', tier: 'x' },
      providerID: PROVIDER_ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.metadata.labels.both', '.metadata.labels.solo', '.spec.providerID'],
      },
    },
  },
  {
    title: 'a merge patch makes the manager the only owner of a changed field',
    manager: 'kubectl-label',
    kind: 'merge',
    body: { metadata: { labels: { solo: '2' } } },
    expected: {
      labels: { both: '1', k: '1', solo: '2', tier: 'x' },
      providerID: PROVIDER_ID,
      owners: {
        'kubectl-label Update': ['.metadata.labels.solo'],
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.metadata.labels.both', '.spec.providerID'],
      },
    },
  },
  {
    title: 'an apply with a single conflict names the field',
    body: nodeWithUid({ solo: '1', both: '1' }),
    expected: {
      status: 409,
      reason: 'Conflict',
      message:
        'Apply failed with 1 conflict: conflict with "kubectl-label" using v1: .metadata.labels.solo',
      causes: [
        {
          reason: 'FieldManagerConflict',
          message: 'conflict with "kubectl-label" using v1',
          field: '.metadata.labels.solo',
        },
      ],
    },
  },
  {
    title: 'a forced apply takes the field over',
    query: '&force=true',
    body: nodeWithUid({ solo: '1', both: '1' }),
    expected: {
      labels: { both: '1', k: '1', solo: '1', tier: 'x' },
      providerID: PROVIDER_ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.metadata.labels.both', '.metadata.labels.solo', '.spec.providerID'],
      },
    },
  },
  {
    title: 'a merge patch that removes a field removes its ownership',
    manager: 'kubectl-label',
    kind: 'merge',
    body: { metadata: { labels: { solo: null } } },
    expected: {
      labels: { both: '1', k: '1', tier: 'x' },
      providerID: PROVIDER_ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.metadata.labels.both', '.spec.providerID'],
      },
    },
  },
  {
    title: 'an update and an apply by the same manager are separate owners',
    kind: 'merge',
    body: { metadata: { labels: { patched: '1' } } },
    expected: {
      labels: { both: '1', k: '1', patched: '1', tier: 'x' },
      providerID: PROVIDER_ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.metadata.labels.both', '.spec.providerID'],
        'pvescaler Update': ['.metadata.labels.patched'],
      },
    },
  },
  {
    title: 'an apply with an outdated resource version is rejected',
    body: node({ resourceVersion: '1', labels: { both: '1' } }, { providerID: PROVIDER_ID }),
    expected: {
      status: 409,
      reason: 'Conflict',
      message:
        'Operation cannot be fulfilled on nodes "n1": the object has been modified; please apply your changes to the latest version and try again',
    },
  },
  {
    title: 'an apply with another provider id is rejected',
    body: nodeWithUid({ both: '1' }, { providerID: 'proxmox://lab/2' }),
    expected: {
      status: 422,
      reason: 'Invalid',
      message: `Node "n1" is invalid: spec.providerID: ${PROVIDER_ID_FORBIDDEN.message}`,
      causes: [PROVIDER_ID_FORBIDDEN],
    },
  },
  {
    title: 'an apply without apiVersion and kind is rejected',
    body: { metadata: { name: 'n1' } },
    expected: { status: 400, reason: 'BadRequest', message: 'invalid object type: /, Kind=' },
  },
  {
    title: 'an apply with a name other than the one in the path is rejected',
    body: node({ name: 'n2' }),
    expected: {
      status: 400,
      reason: 'BadRequest',
      message: 'the name of the object (n2) does not match the name on the URL (n1)',
    },
  },
  {
    title: 'an apply with managedFields is rejected',
    body: node({ managedFields: [{ manager: 'x' }] }),
    expected: { status: 400, reason: 'BadRequest', message: 'metadata.managedFields must be nil' },
  },
  {
    title: 'an apply without a field manager is rejected',
    manager: '',
    body: node(),
    expected: {
      status: 422,
      reason: 'Invalid',
      message:
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
      causes: [
        {
          reason: 'FieldValueRequired',
          message: 'Required value: is required for apply patch',
          field: 'fieldManager',
        },
      ],
    },
  },
  {
    title: 'a forced merge patch is rejected',
    kind: 'merge',
    query: '&force=true',
    body: { metadata: { labels: { a: '1' } } },
    expected: {
      status: 422,
      reason: 'Invalid',
      message:
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
      causes: [
        {
          reason: 'FieldValueForbidden',
          message: 'Forbidden: may not be specified for non-apply patch',
          field: 'force',
        },
      ],
    },
  },
  {
    title: 'a replace with another uid fails with a precondition conflict',
    method: 'PUT',
    kind: 'whole',
    body: node({ uid: ANOTHER_UID }, { providerID: PROVIDER_ID }),
    expected: {
      status: 409,
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on nodes "n1": Precondition failed: UID in precondition: ${ANOTHER_UID}, UID in object meta: UID`,
    },
  },
];

/** Runs all steps on an API server without Nodes. Returns the response to each step in the form of `expected`. */
export async function runApplySteps(
  transport: Transport,
  server: string,
): Promise<readonly { readonly title: string; readonly response: unknown }[]> {
  const results: { title: string; response: unknown }[] = [];
  let uid = 'UID';
  for (const step of APPLY_STEPS) {
    const { method = 'PATCH', manager = 'pvescaler', kind = 'apply' } = step;
    const path = PATHS[method] ?? '/api/v1/nodes/n1';
    const response = await transport.request({
      method,
      url: `${server}${path}?fieldManager=${manager}${step.query ?? ''}`,
      headers: { accept: 'application/json', 'content-type': TYPES[kind] },
      ...(step.body && { body: JSON.stringify(step.body).replaceAll('"UID"', `"${uid}"`) }),
      timeoutMs: 10_000,
    });
    const text = await readText(response.body);
    const body = JSON.parse(text) as ApiResponse;
    if (method === 'POST') uid = body.metadata.uid ?? '';
    results.push({ title: step.title, response: summarize(body, uid) });
  }
  return results;
}

interface ApiResponse {
  readonly kind?: string;
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly object[] };
  readonly metadata: {
    readonly uid?: string;
    readonly labels?: object;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly managedFields?: readonly ManagedFieldsEntry[];
  };
  readonly spec?: { readonly providerID?: string };
}

interface ManagedFieldsEntry {
  readonly manager: string;
  readonly operation: string;
  readonly fieldsV1: object;
}

function summarize(body: ApiResponse, uid: string): unknown {
  const { metadata, spec } = body;
  if (body.kind === 'Status') {
    const { code, reason, message = '', details } = body;
    // A real API server repeats some causes, in any order.
    const causes = [...new Set((details?.causes ?? []).map((one) => JSON.stringify(one)))].sort();
    return {
      status: code,
      reason,
      // A real API server also includes the etcd path of the object.
      message: message.replace(/StorageError: .*AdditionalErrorMsg: /, '').replaceAll(uid, 'UID'),
      ...(causes.length > 0 && { causes: causes.map((one): unknown => JSON.parse(one)) }),
    };
  }
  const annotations = Object.entries(metadata.annotations ?? {}).filter(isNotFromController);
  return {
    labels: metadata.labels,
    ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
    ...(spec?.providerID !== undefined && { providerID: spec.providerID }),
    owners: Object.fromEntries(
      (metadata.managedFields ?? [])
        .map((entry) => [`${entry.manager} ${entry.operation}`, listPaths(entry.fieldsV1)] as const)
        .filter(([, paths]) => paths.length > 0),
    ),
  };
}

/** False for fields that the controllers of a real cluster write to Nodes. */
function isNotFromController([name]: readonly [string, unknown]): boolean {
  return !['f:node.alpha.kubernetes.io/ttl', 'f:taints', 'f:status'].includes(
    name.startsWith('f:') ? name : `f:${name}`,
  );
}

/** Skips the `.` entries, which mark the ownership of a map itself. */
function listPaths(tree: object, before = ''): readonly string[] {
  const branches = Object.entries(tree)
    .filter(([name]) => name.startsWith('f:'))
    .filter(isNotFromController);
  return branches
    .flatMap(([name, branch]: readonly [string, object]) => {
      const path = `${before}.${name.slice(2)}`;
      return Object.keys(branch).length === 0 ? [path] : listPaths(branch, path);
    })
    .sort();
}
