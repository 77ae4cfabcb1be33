// SPDX-License-Identifier: Apache-2.0
// The OpenAPI description of the JSON API, from the schemas that the server uses.
import { type ZodType, z } from 'zod';
import {
  actionResult,
  dashboardState,
  pauseRequest,
  scaleRequest,
  stateChange,
} from './dashboard-contract.ts';

interface Action {
  readonly path: string;
  readonly summary: string;
  readonly body?: ZodType;
}

const ACTIONS: readonly Action[] = [
  {
    path: '/api/v1/pools/{name}/scale',
    summary: 'Scales a pool; machines that leave are drained first.',
    body: scaleRequest,
  },
  {
    path: '/api/v1/pools/{name}/pause',
    summary: 'The autoscaler requests no machines of the pool for this time.',
    body: pauseRequest,
  },
  { path: '/api/v1/pools/{name}/resume', summary: 'Ends the pause of a pool.' },
  { path: '/api/v1/machines/{name}/drain', summary: 'Drains a machine, then deletes it.' },
  { path: '/api/v1/machines/{name}/delete', summary: 'Deletes a machine without draining it.' },
];

const PROBLEM = z.object({
  error: z.string(),
  code: z.string().optional(),
  hint: z.string().optional(),
});

function toSchema(schema: ZodType) {
  return z.toJSONSchema(schema, { target: 'openapi-3.0' });
}

function content(schema: ZodType) {
  return { 'application/json': { schema: toSchema(schema) } };
}

const OTHER_SITE = {
  description: 'the Host or Origin is that of another site',
  content: content(PROBLEM),
};

export function describeApi(): object {
  return {
    openapi: '3.0.3',
    info: {
      title: 'pvescaler',
      version: 'v1',
      description: 'What the dashboard shows. Actions need the token of http.dashboardTokenFile.',
    },
    paths: {
      '/api/v1/state': {
        get: {
          summary: 'The state of the fleet.',
          responses: {
            200: { description: 'the state', content: content(dashboardState) },
            403: OTHER_SITE,
            default: { description: 'the state cannot be read', content: content(PROBLEM) },
          },
        },
      },
      '/api/v1/openapi.json': {
        get: {
          summary: 'This description.',
          responses: {
            200: { description: 'OpenAPI 3.0', content: content(z.looseObject({})) },
            403: OTHER_SITE,
          },
        },
      },
      '/api/v1/events': {
        get: {
          summary:
            'Server-sent events: `state` with the whole state, then `change` with the parts and machines that changed, and `alive` every 15 seconds.',
          responses: {
            200: {
              description: 'the events; the data of `change` has the schema StateChange',
              content: { 'text/event-stream': { schema: { type: 'string' } } },
            },
            403: OTHER_SITE,
          },
        },
      },
      ...Object.fromEntries(ACTIONS.map((action) => [action.path, { post: describe(action) }])),
    },
    components: {
      schemas: { StateChange: toSchema(stateChange) },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  };
}

function describe({ summary, body }: Action): object {
  const refused = (description: string) => ({ description, content: content(PROBLEM) });
  return {
    summary,
    security: [{ token: [] }],
    parameters: [{ name: 'name', in: 'path', required: true, schema: { type: 'string' } }],
    ...(body !== undefined && { requestBody: { required: true, content: content(body) } }),
    responses: {
      202: { description: 'requested', content: content(actionResult) },
      400: refused('the request is invalid'),
      401: refused('the token is wrong'),
      403: refused('actions are disabled, or the request comes from another site'),
      404: refused('there is no such pool or machine'),
      413: refused('the request is too long'),
      default: refused('the request was refused; the status is that of the class of its code'),
    },
  };
}
