// SPDX-License-Identifier: Apache-2.0
// Requests for a custom resource and the expected responses, recorded from a real API server. The tests run the same steps
// on the simulator and on a real API server.
import type { TransportRequest } from '../../src/ports/transport.ts';
import { INVALID_SPECS, invalid } from './invalid-widgets.ts';
import { WIDGET_DEFINITION } from './widget-definition.ts';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const DEFINITION = `${DEFINITIONS}/widgets.example.com`;
const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const ANOTHER_UID = '11111111-2222-4333-8444-555555555555';
const MERGE = 'application/merge-patch+json';
const APPLY = 'application/apply-patch+yaml';

export interface CustomStep {
  readonly title: string;
  readonly method: TransportRequest['method'];
  readonly path: string;
  readonly type?: string;
  readonly accept?: string;
  /** `UID` and `VERSION` are replaced by those of the last object in a response. */
  readonly body?: object;
  /** The request is repeated until the response has this status. */
  readonly until?: number;
  readonly expected: unknown;
}

function widget(spec: object, metadata: object = {}, rest: object = {}): object {
  return {
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { name: 'w1', ...metadata },
    spec,
    ...rest,
  };
}

const NAMES = {
  categories: ['all'],
  kind: 'Widget',
  listKind: 'WidgetList',
  plural: 'widgets',
  shortNames: ['wd'],
  singular: 'widget',
};
const NO_SUCH_PATH = { status: 404, text: '404 page not found\n' };
const NOT_FOUND = {
  status: 404,
  reason: 'NotFound',
  message: 'widgets.example.com "w1" not found',
};
const CONFLICT = {
  status: 409,
  reason: 'Conflict',
  message:
    'Operation cannot be fulfilled on widgets.example.com "w1": the object has been modified; please apply your changes to the latest version and try again',
};
const DEFAULTED = { box: { depth: 3 }, replicas: 1, size: 'small' };
const CREATED = {
  ...DEFAULTED,
  fixed: 'f',
  free: { a: { b: 1 } },
  parts: [{ mode: 'x', name: 'a' }],
};
const UPDATED = { box: { depth: 3 }, fixed: 'f', replicas: 1, size: 'large' };
const RUNNING = {
  conditions: [{ status: 'True', type: 'Ready' }],
  phase: 'Running',
  replicas: 2,
};

export const CUSTOM_STEPS: readonly CustomStep[] = [
  {
    title: 'without a definition there is no list',
    method: 'GET',
    path: WIDGETS,
    expected: NO_SUCH_PATH,
  },
  {
    title: 'without a definition there is no create',
    method: 'POST',
    path: WIDGETS,
    body: widget({ size: 'small' }),
    expected: NO_SUCH_PATH,
  },
  {
    title: 'a definition gets names and a stored version',
    method: 'POST',
    path: DEFINITIONS,
    body: WIDGET_DEFINITION,
    expected: {
      status: 201,
      generation: 1,
      names: NAMES,
      storedVersions: ['v1'],
      conditions: [],
    },
  },
  {
    title: 'the resource is listed',
    method: 'GET',
    path: WIDGETS,
    until: 200,
    expected: { status: 200, kind: 'WidgetList', items: 0 },
  },
  {
    title: 'the definition is established',
    method: 'GET',
    path: DEFINITION,
    expected: {
      status: 200,
      generation: 1,
      names: NAMES,
      storedVersions: ['v1'],
      conditions: ['NamesAccepted True NoConflicts', 'Established True InitialNamesAccepted'],
    },
  },
  {
    title: 'another resource of the group does not exist',
    method: 'GET',
    path: '/apis/example.com/v1/gadgets',
    expected: NO_SUCH_PATH,
  },
  {
    title: 'a missing object is not found',
    method: 'GET',
    path: `${WIDGETS}/w1`,
    expected: NOT_FOUND,
  },
  ...INVALID_SPECS.map(([spec, expected]): CustomStep => {
    const isSizeGiven = 'size' in spec || Object.keys(spec).length === 0;
    return {
      title: `a create with the spec ${JSON.stringify(spec)} is invalid`,
      method: 'POST',
      path: WIDGETS,
      body: widget(isSizeGiven ? spec : { size: 'small', ...spec }),
      expected,
    };
  }),
  {
    title: 'a create with strict validation refuses unknown fields',
    method: 'POST',
    path: `${WIDGETS}?fieldValidation=Strict`,
    body: widget({ size: 'small', unknown: 1, parts: [{ name: 'a', other: 1 }] }, {}, { top: 1 }),
    expected: {
      status: 400,
      reason: 'BadRequest',
      message:
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.parts[0].other", unknown field "spec.unknown", unknown field "top"',
    },
  },
  {
    title: 'a create drops unknown fields and the status, and sets defaults',
    method: 'POST',
    path: WIDGETS,
    body: widget(
      {
        size: 'small',
        fixed: 'f',
        code: null,
        unknown: 1,
        box: { other: 1 },
        free: { a: { b: 1 } },
        parts: [{ name: 'a', other: 1 }],
      },
      {},
      { status: { phase: 'Early' }, top: 1 },
    ),
    expected: { status: 201, generation: 1, spec: CREATED },
  },
  {
    title: 'a second create of the name fails',
    method: 'POST',
    path: WIDGETS,
    body: widget({ size: 'small' }),
    expected: {
      status: 409,
      reason: 'AlreadyExists',
      message: 'widgets.example.com "w1" already exists',
    },
  },
  {
    title: 'an update without a resource version is invalid',
    method: 'PUT',
    path: `${WIDGETS}/w1`,
    body: widget({ size: 'large' }),
    expected: {
      status: 422,
      reason: 'Invalid',
      message:
        'widgets.example.com "w1" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
      causes: [
        {
          reason: 'FieldValueInvalid',
          message: 'Invalid value: 0: must be specified for an update',
          field: 'metadata.resourceVersion',
        },
      ],
    },
  },
  {
    title: 'an update with an outdated resource version conflicts',
    method: 'PUT',
    path: `${WIDGETS}/w1`,
    body: widget({ size: 'large', fixed: 'other' }, { resourceVersion: '1' }),
    expected: CONFLICT,
  },
  {
    title: 'an update of a fixed field is invalid',
    method: 'PUT',
    path: `${WIDGETS}/w1`,
    body: widget({ size: 'large', fixed: 'other' }, { resourceVersion: 'VERSION' }),
    expected: invalid(
      'spec.fixed',
      'FieldValueInvalid',
      'Invalid value: "other": fixed is immutable',
    ),
  },
  {
    title: 'an update ignores the status',
    method: 'PUT',
    path: `${WIDGETS}/w1`,
    body: widget(
      { size: 'large', fixed: 'f' },
      { resourceVersion: 'VERSION', labels: { a: '1' } },
      { status: { phase: 'Early' } },
    ),
    expected: { status: 200, generation: 2, labels: { a: '1' }, spec: UPDATED },
  },
  {
    title: 'an update of the status with an outdated resource version conflicts',
    method: 'PUT',
    path: `${WIDGETS}/w1/status`,
    body: widget({ size: 'large' }, { resourceVersion: '1' }, { status: RUNNING }),
    expected: CONFLICT,
  },
  {
    title: 'an update of the status with a wrong type is invalid',
    method: 'PUT',
    path: `${WIDGETS}/w1/status`,
    body: widget({ size: 'large' }, { resourceVersion: 'VERSION' }, { status: { phase: 1 } }),
    expected: invalid(
      'status.phase',
      'FieldValueTypeInvalid',
      'Invalid value: "integer": phase in body must be of type string: "integer"',
    ),
  },
  {
    title: 'an update of the status ignores spec and metadata',
    method: 'PUT',
    path: `${WIDGETS}/w1/status`,
    body: widget(
      { size: 'nonsense' },
      { resourceVersion: 'VERSION', labels: { b: '2' } },
      { status: { ...RUNNING, unknown: 1 } },
    ),
    expected: {
      status: 200,
      generation: 2,
      labels: { a: '1' },
      spec: UPDATED,
      objectStatus: RUNNING,
    },
  },
  {
    title: 'a merge patch with an outdated resource version conflicts',
    method: 'PATCH',
    path: `${WIDGETS}/w1`,
    type: MERGE,
    body: { metadata: { resourceVersion: '1' }, spec: { size: 'small' } },
    expected: CONFLICT,
  },
  {
    title: 'a merge patch ignores the status',
    method: 'PATCH',
    path: `${WIDGETS}/w1`,
    type: MERGE,
    body: { spec: { replicas: 3 }, status: { phase: 'Other' } },
    expected: {
      status: 200,
      generation: 3,
      labels: { a: '1' },
      spec: { ...UPDATED, replicas: 3 },
      objectStatus: RUNNING,
    },
  },
  {
    title: 'a merge patch of the status with an outdated resource version conflicts',
    method: 'PATCH',
    path: `${WIDGETS}/w1/status`,
    type: MERGE,
    body: { metadata: { resourceVersion: '1' }, status: { phase: 'Other' } },
    expected: CONFLICT,
  },
  {
    title: 'a strategic merge patch is refused',
    method: 'PATCH',
    path: `${WIDGETS}/w1`,
    type: 'application/strategic-merge-patch+json',
    body: { spec: { replicas: 4 } },
    expected: {
      status: 415,
      reason: 'UnsupportedMediaType',
      message:
        'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
    },
  },
  {
    title: 'the scale shows the replicas of spec and status',
    method: 'GET',
    path: `${WIDGETS}/w1/scale`,
    expected: { status: 200, spec: { replicas: 3 }, objectStatus: { replicas: 2 } },
  },
  {
    title: 'a scale changes the spec',
    method: 'PATCH',
    path: `${WIDGETS}/w1/scale`,
    type: MERGE,
    body: { spec: { replicas: 6 } },
    expected: { status: 200, spec: { replicas: 6 }, objectStatus: { replicas: 2 } },
  },
  {
    title: 'a scale beyond the limit of the schema is invalid',
    method: 'PATCH',
    path: `${WIDGETS}/w1/scale`,
    type: MERGE,
    body: { spec: { replicas: 60 } },
    expected: invalid(
      'spec.replicas',
      'FieldValueInvalid',
      'Invalid value: 60: spec.replicas in body should be less than or equal to 10',
    ),
  },
  {
    title: 'a table has the columns of the definition',
    method: 'GET',
    path: WIDGETS,
    accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    expected: {
      status: 200,
      columns: [
        'Name string 0',
        'Size string 0',
        'Replicas integer 0',
        'Since date 0',
        'Ready string 1',
        'Age date 0',
      ],
      cells: [['w1', 'large', 6, null, 'True']],
    },
  },
  {
    title: 'an apply of an unknown field fails',
    method: 'PATCH',
    path: `${WIDGETS}/w1?fieldManager=gitops`,
    type: APPLY,
    body: widget({ size: 'large', unknown: 1 }),
    expected: {
      status: 500,
      message:
        'failed to create typed patch object (/w1; example.com/v1, Kind=Widget): .spec.unknown: field not declared in schema',
    },
  },
  {
    title: 'an apply of an omitted field with a default sets the default again',
    method: 'PATCH',
    path: `${WIDGETS}/w1?fieldManager=gitops&force=true`,
    type: APPLY,
    body: widget({ size: 'large', replicas: 5 }),
    expected: {
      status: 200,
      generation: 5,
      labels: { a: '1' },
      spec: { ...UPDATED, replicas: 5 },
      objectStatus: RUNNING,
    },
  },
  {
    title: 'the same manager omits the field',
    method: 'PATCH',
    path: `${WIDGETS}/w1?fieldManager=gitops`,
    type: APPLY,
    body: widget({ size: 'large' }),
    expected: {
      status: 200,
      generation: 6,
      labels: { a: '1' },
      spec: UPDATED,
      objectStatus: RUNNING,
    },
  },
  {
    title: 'an apply of the value of another manager conflicts',
    method: 'PATCH',
    path: `${WIDGETS}/w1?fieldManager=other`,
    type: APPLY,
    body: widget({ size: 'small' }),
    expected: {
      status: 409,
      reason: 'Conflict',
      message:
        'Apply failed with 2 conflicts: conflicts with "gitops":\n- .spec.size\nconflicts with "steps" using example.com/v1:\n- .spec.size',
      causes: ['"gitops"', '"steps" using example.com/v1'].map((owner) => ({
        reason: 'FieldManagerConflict',
        message: `conflict with ${owner}`,
        field: '.spec.size',
      })),
    },
  },
  {
    title: 'a delete with an outdated resource version conflicts',
    method: 'DELETE',
    path: `${WIDGETS}/w1`,
    body: { preconditions: { uid: 'UID', resourceVersion: '1' } },
    expected: {
      status: 409,
      reason: 'Conflict',
      message:
        'Operation cannot be fulfilled on Widget.example.com "w1": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (VERSION). The object might have been modified',
    },
  },
  {
    title: 'a delete with another uid conflicts',
    method: 'DELETE',
    path: `${WIDGETS}/w1`,
    body: { preconditions: { uid: ANOTHER_UID, resourceVersion: 'VERSION' } },
    expected: {
      status: 409,
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on Widget.example.com "w1": the UID in the precondition (${ANOTHER_UID}) does not match the UID in record (UID). The object might have been deleted and then recreated`,
    },
  },
  {
    title: 'a delete with the current uid and resource version deletes',
    method: 'DELETE',
    path: `${WIDGETS}/w1`,
    body: { preconditions: { uid: 'UID', resourceVersion: 'VERSION' } },
    expected: { status: 200, message: '' },
  },
  {
    title: 'an object with a finalizer',
    method: 'POST',
    path: WIDGETS,
    body: widget({ size: 'small' }, { finalizers: ['example.com/held'] }),
    expected: { status: 201, generation: 1, spec: DEFAULTED },
  },
  {
    title: 'its deletion counts as a generation',
    method: 'DELETE',
    path: `${WIDGETS}/w1`,
    expected: { status: 200, generation: 2, spec: DEFAULTED },
  },
  {
    title: 'without the finalizer it is gone',
    method: 'PATCH',
    path: `${WIDGETS}/w1`,
    type: MERGE,
    body: { metadata: { finalizers: null } },
    expected: { status: 200, generation: 2, spec: DEFAULTED },
  },
  { title: 'and not found', method: 'GET', path: `${WIDGETS}/w1`, expected: NOT_FOUND },
  {
    title: 'an object of a definition that is deleted',
    method: 'POST',
    path: WIDGETS,
    body: widget({ size: 'small' }),
    expected: { status: 201, generation: 1, spec: DEFAULTED },
  },
  {
    title: 'the deletion of the definition',
    method: 'DELETE',
    path: DEFINITION,
    expected: {
      status: 200,
      generation: 1,
      names: NAMES,
      storedVersions: ['v1'],
      conditions: ['NamesAccepted True NoConflicts', 'Established True InitialNamesAccepted'],
    },
  },
  {
    title: 'deletes the definition',
    method: 'GET',
    path: DEFINITION,
    until: 404,
    expected: {
      status: 404,
      reason: 'NotFound',
      message: 'customresourcedefinitions.apiextensions.k8s.io "widgets.example.com" not found',
    },
  },
  { title: 'and its resource', method: 'GET', path: WIDGETS, until: 404, expected: NO_SUCH_PATH },
];
