// SPDX-License-Identifier: Apache-2.0
// Server-side apply, request by request, and what an API server answers. The simulator is held to it, and so is the
// real one: what is written here was seen there.
import { textOf } from '../../src/ports/contract/transport.contract.ts';
import type { Transport, TransportRequest } from '../../src/ports/transport.ts';

const ANOTHER_UID = '11111111-2222-4333-8444-555555555555';
const ID = 'proxmox://lab/1';

export interface Step {
  readonly what: string;
  readonly method?: TransportRequest['method'];
  readonly manager?: string;
  readonly query?: string;
  readonly kind?: 'apply' | 'merge' | 'whole';
  /** `UID` stands for that of the node, wherever it is. */
  readonly body?: object;
  readonly answer: unknown;
}

const PATHS: Readonly<Record<string, string>> = { POST: '/api/v1/nodes' };
const TYPES = {
  apply: 'application/apply-patch+yaml',
  merge: 'application/merge-patch+json',
  whole: 'application/json',
} as const;

function aNode(metadata: object = {}, spec?: object): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', ...metadata },
    ...(spec && { spec }),
  };
}

const ours = (labels: object, spec: object | undefined = { providerID: ID }) =>
  aNode({ uid: 'UID', labels }, spec);

const NOT_THERE = `Operation cannot be fulfilled on nodes "n1": uid mismatch: the provided object specified uid ${ANOTHER_UID}, and no existing object was found`;
const IMMUTABLE = {
  reason: 'FieldValueInvalid',
  message: `Invalid value: "${ANOTHER_UID}": field is immutable`,
  field: 'metadata.uid',
};
const FIXED = {
  reason: 'FieldValueForbidden',
  message: 'Forbidden: node updates may not change providerID except from "" to valid',
  field: 'spec.providerID',
};

export const STEPS: readonly Step[] = [
  {
    what: 'a uid keeps an apply from making an object',
    body: aNode({ uid: ANOTHER_UID, labels: { a: '1' } }),
    answer: { status: 409, reason: 'Conflict', message: NOT_THERE },
  },
  {
    what: 'nothing was made',
    method: 'GET',
    answer: { status: 404, reason: 'NotFound', message: 'nodes "n1" not found' },
  },
  {
    what: 'a merge patch makes nothing either',
    kind: 'merge',
    body: { metadata: { uid: ANOTHER_UID } },
    answer: { status: 404, reason: 'NotFound', message: 'nodes "n1" not found' },
  },
  {
    what: 'who creates owns',
    method: 'POST',
    manager: 'kubelet',
    kind: 'whole',
    body: aNode({ labels: { k: '1', tier: 'x' } }),
    answer: {
      labels: { k: '1', tier: 'x' },
      owners: { 'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'] },
    },
  },
  {
    what: 'who applies owns what he names',
    body: aNode(
      {
        uid: 'UID',
        labels: { 'node-role.kubernetes.io/worker': '' },
        annotations: { 'x.y/z': 'n' },
      },
      { providerID: ID },
    ),
    answer: {
      labels: { k: '1', 'node-role.kubernetes.io/worker': '', tier: 'x' },
      annotations: { 'x.y/z': 'n' },
      providerID: ID,
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
    what: 'another uid is refused, and so is leaving out the provider id',
    body: aNode({ uid: ANOTHER_UID, labels: { 'node-role.kubernetes.io/worker': '' } }),
    answer: {
      status: 422,
      reason: 'Invalid',
      message: `Node "n1" is invalid: [metadata.uid: ${IMMUTABLE.message}, spec.providerID: ${FIXED.message}]`,
      causes: [FIXED, IMMUTABLE],
    },
  },
  {
    what: 'another uid is refused to a merge patch',
    kind: 'merge',
    body: { metadata: { uid: ANOTHER_UID, labels: { a: '1' } } },
    answer: {
      status: 422,
      reason: 'Invalid',
      message: `Node "n1" is invalid: metadata.uid: ${IMMUTABLE.message}`,
      causes: [IMMUTABLE],
    },
  },
  {
    what: 'values of others are conflicts',
    body: ours({ tier: 'y', k: '2' }),
    answer: {
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
    what: 'what is named no longer goes away; the same value is shared',
    body: ours({ tier: 'x' }),
    answer: {
      labels: { k: '1', tier: 'x' },
      providerID: ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'pvescaler Apply': ['.metadata.labels.tier', '.spec.providerID'],
      },
    },
  },
  {
    what: 'what is shared stays',
    body: aNode({ uid: 'UID' }, { providerID: ID }),
    answer: {
      labels: { k: '1', tier: 'x' },
      providerID: ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'pvescaler Apply': ['.spec.providerID'],
      },
    },
  },
  {
    what: 'another one applies',
    manager: 'other',
    body: aNode({ labels: { both: '1' } }),
    answer: {
      labels: { both: '1', k: '1', tier: 'x' },
      providerID: ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.spec.providerID'],
      },
    },
  },
  {
    what: 'conflicts with several are told by name',
    body: ours({ both: '2', k: '2' }),
    answer: {
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
    what: 'an apply on top',
    body: ours({ solo: '1', both: '1' }),
    answer: {
      labels: { both: '1', k: '1', solo: '1', tier: 'x' },
      providerID: ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.metadata.labels.both', '.metadata.labels.solo', '.spec.providerID'],
      },
    },
  },
  {
    what: 'who changes it by a patch owns it alone',
    manager: 'kubectl-label',
    kind: 'merge',
    body: { metadata: { labels: { solo: '2' } } },
    answer: {
      labels: { both: '1', k: '1', solo: '2', tier: 'x' },
      providerID: ID,
      owners: {
        'kubectl-label Update': ['.metadata.labels.solo'],
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.metadata.labels.both', '.spec.providerID'],
      },
    },
  },
  {
    what: 'a single conflict',
    body: ours({ solo: '1', both: '1' }),
    answer: {
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
    what: 'force takes it',
    query: '&force=true',
    body: ours({ solo: '1', both: '1' }),
    answer: {
      labels: { both: '1', k: '1', solo: '1', tier: 'x' },
      providerID: ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.metadata.labels.both', '.metadata.labels.solo', '.spec.providerID'],
      },
    },
  },
  {
    what: 'who removes it leaves no owner',
    manager: 'kubectl-label',
    kind: 'merge',
    body: { metadata: { labels: { solo: null } } },
    answer: {
      labels: { both: '1', k: '1', tier: 'x' },
      providerID: ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.metadata.labels.both', '.spec.providerID'],
      },
    },
  },
  {
    what: 'a manager that patches is another than the one of that name that applies',
    kind: 'merge',
    body: { metadata: { labels: { patched: '1' } } },
    answer: {
      labels: { both: '1', k: '1', patched: '1', tier: 'x' },
      providerID: ID,
      owners: {
        'kubelet Update': ['.metadata.labels.k', '.metadata.labels.tier'],
        'other Apply': ['.metadata.labels.both'],
        'pvescaler Apply': ['.metadata.labels.both', '.spec.providerID'],
        'pvescaler Update': ['.metadata.labels.patched'],
      },
    },
  },
  {
    what: 'an old version is refused',
    body: aNode({ resourceVersion: '1', labels: { both: '1' } }, { providerID: ID }),
    answer: {
      status: 409,
      reason: 'Conflict',
      message:
        'Operation cannot be fulfilled on nodes "n1": the object has been modified; please apply your changes to the latest version and try again',
    },
  },
  {
    what: 'another provider id is refused',
    body: ours({ both: '1' }, { providerID: 'proxmox://lab/2' }),
    answer: {
      status: 422,
      reason: 'Invalid',
      message: `Node "n1" is invalid: spec.providerID: ${FIXED.message}`,
      causes: [FIXED],
    },
  },
  {
    what: 'an apply says what it is',
    body: { metadata: { name: 'n1' } },
    answer: { status: 400, reason: 'BadRequest', message: 'invalid object type: /, Kind=' },
  },
  {
    what: 'an apply is of what the path names',
    body: aNode({ name: 'n2' }),
    answer: {
      status: 400,
      reason: 'BadRequest',
      message: 'the name of the object (n2) does not match the name on the URL (n1)',
    },
  },
  {
    what: 'the account is not for the caller to write',
    body: aNode({ managedFields: [{ manager: 'x' }] }),
    answer: { status: 400, reason: 'BadRequest', message: 'metadata.managedFields must be nil' },
  },
  {
    what: 'an apply names its manager',
    manager: '',
    body: aNode(),
    answer: {
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
    what: 'only an apply is forced',
    kind: 'merge',
    query: '&force=true',
    body: { metadata: { labels: { a: '1' } } },
    answer: {
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
    what: 'who replaces it by another uid is told of a precondition',
    method: 'PUT',
    kind: 'whole',
    body: aNode({ uid: ANOTHER_UID }, { providerID: ID }),
    answer: {
      status: 409,
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on nodes "n1": Precondition failed: UID in precondition: ${ANOTHER_UID}, UID in object meta: UID`,
    },
  },
];

/** Goes through it on an API server without Nodes; what each step was answered, in the words of the script. */
export async function playScript(
  transport: Transport,
  server: string,
): Promise<readonly { readonly what: string; readonly answer: unknown }[]> {
  const played: { what: string; answer: unknown }[] = [];
  let uid = 'UID';
  for (const step of STEPS) {
    const { method = 'PATCH', manager = 'pvescaler', kind = 'apply' } = step;
    const path = PATHS[method] ?? '/api/v1/nodes/n1';
    const response = await transport.request({
      method,
      url: `${server}${path}?fieldManager=${manager}${step.query ?? ''}`,
      headers: { accept: 'application/json', 'content-type': TYPES[kind] },
      ...(step.body && { body: JSON.stringify(step.body).replaceAll('"UID"', `"${uid}"`) }),
      headTimeoutMs: 10_000,
    });
    const text = await textOf(response.body);
    const body = JSON.parse(text) as Answered;
    if (method === 'POST') uid = body.metadata.uid ?? '';
    played.push({ what: step.what, answer: wordsOf(body, uid) });
  }
  return played;
}

interface Answered {
  readonly kind?: string;
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly object[] };
  readonly metadata: {
    readonly uid?: string;
    readonly labels?: object;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly managedFields?: readonly Entry[];
  };
  readonly spec?: { readonly providerID?: string };
}

interface Entry {
  readonly manager: string;
  readonly operation: string;
  readonly fieldsV1: object;
}

function wordsOf(body: Answered, uid: string): unknown {
  const { metadata, spec } = body;
  if (body.kind === 'Status') {
    const { code, reason, message = '', details } = body;
    // The real one says some of it twice, and in any order.
    const causes = [...new Set((details?.causes ?? []).map((one) => JSON.stringify(one)))].sort();
    return {
      status: code,
      reason,
      // Of a precondition the real one also tells where in etcd the object is.
      message: message.replace(/StorageError: .*AdditionalErrorMsg: /, '').replaceAll(uid, 'UID'),
      ...(causes.length > 0 && { causes: causes.map((one): unknown => JSON.parse(one)) }),
    };
  }
  const annotations = Object.entries(metadata.annotations ?? {}).filter(isOfScript);
  return {
    labels: metadata.labels,
    ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
    ...(spec?.providerID !== undefined && { providerID: spec.providerID }),
    owners: Object.fromEntries(
      (metadata.managedFields ?? [])
        .map((entry) => [`${entry.manager} ${entry.operation}`, pathsOf(entry.fieldsV1)] as const)
        .filter(([, paths]) => paths.length > 0),
    ),
  };
}

/** A real cluster has controllers that write on Nodes, too. */
function isOfScript([name]: readonly [string, unknown]): boolean {
  return !['f:node.alpha.kubernetes.io/ttl', 'f:taints', 'f:status'].includes(
    name.startsWith('f:') ? name : `f:${name}`,
  );
}

/** Without the dots, which stand for maps that somebody made. */
function pathsOf(tree: object, before = ''): readonly string[] {
  const branches = Object.entries(tree)
    .filter(([name]) => name.startsWith('f:'))
    .filter(isOfScript);
  return branches
    .flatMap(([name, branch]: readonly [string, object]) => {
      const path = `${before}.${name.slice(2)}`;
      return Object.keys(branch).length === 0 ? [path] : pathsOf(branch, path);
    })
    .sort();
}
