// SPDX-License-Identifier: Apache-2.0
// A CustomResourceDefinition with what schemas and subresources offer.

export const WIDGET_DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'], categories: ['all'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        additionalPrinterColumns: [
          { name: 'Size', type: 'string', jsonPath: '.spec.size' },
          {
            name: 'Replicas',
            type: 'integer',
            jsonPath: '.spec.replicas',
            description: 'how many',
          },
          { name: 'Since', type: 'date', jsonPath: '.status.since' },
          {
            name: 'Ready',
            type: 'string',
            jsonPath: '.status.conditions[?(@.type=="Ready")].status',
            priority: 1,
          },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            description: 'A widget.',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['size'],
                properties: {
                  size: { type: 'string', enum: ['small', 'large'], description: 'How big.' },
                  replicas: { type: 'integer', minimum: 0, maximum: 10, default: 1 },
                  code: { type: 'string', pattern: '^[a-z]+$', maxLength: 5, minLength: 2 },
                  fixed: {
                    type: 'string',
                    'x-kubernetes-validations': [
                      { rule: 'self == oldSelf', message: 'fixed is immutable' },
                    ],
                  },
                  labels: { type: 'object', additionalProperties: { type: 'string' } },
                  free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  port: { 'x-kubernetes-int-or-string': true },
                  at: { type: 'string', format: 'date-time' },
                  note: { type: 'string', nullable: true },
                  parts: {
                    type: 'array',
                    maxItems: 2,
                    minItems: 1,
                    items: {
                      type: 'object',
                      required: ['name'],
                      properties: {
                        name: { type: 'string' },
                        mode: { type: 'string', default: 'x' },
                      },
                    },
                  },
                  box: {
                    type: 'object',
                    default: {},
                    properties: { depth: { type: 'integer', default: 3 } },
                  },
                },
              },
              status: {
                type: 'object',
                properties: {
                  replicas: { type: 'integer' },
                  since: { type: 'string', format: 'date-time' },
                  phase: { type: 'string' },
                  conditions: {
                    type: 'array',
                    items: {
                      type: 'object',
                      required: ['type', 'status'],
                      properties: { type: { type: 'string' }, status: { type: 'string' } },
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
} as const;
