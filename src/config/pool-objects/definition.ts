// SPDX-License-Identifier: Apache-2.0
// The CustomResourceDefinition of ProxmoxPool. Its spec comes from the schema of the config.
import { poolNameRule, poolSpecSchema } from './spec-schema.ts';

const integer = (description: string) => ({ type: 'integer', description });
const text = (description: string) => ({ type: 'string', description });

const CONDITION = {
  type: 'object',
  required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
  properties: {
    type: text('Ready, BackedOff, AtCapacity or Paused.'),
    status: { ...text('Whether it is so.'), enum: ['True', 'False', 'Unknown'] },
    reason: text('Why, in one word.'),
    message: text('Why, for people.'),
    observedGeneration: integer('Generation of the spec that it is about.'),
    lastTransitionTime: { ...text('When the status changed last.'), format: 'date-time' },
  },
};

const STATUS = {
  type: 'object',
  description: 'What pvescaler has observed. Written by the replica that leads.',
  properties: {
    observedGeneration: integer('Generation of the spec that the status is about.'),
    replicas: integer(
      'Machines that exist or are requested, those being drained or deleted included.',
    ),
    readyReplicas: integer('Machines whose Node is ready.'),
    minReplicas: integer('Minimum number of machines that applies now.'),
    maxReplicas: integer('Maximum number of machines that applies now.'),
    selector: text('Label selector of the Nodes of the pool.'),
    conditions: {
      type: 'array',
      description:
        'Ready: the pool is in use. BackedOff: new machines failed, so none is created for a while. AtCapacity: the pool or its hosts are full. Paused: the autoscaler requests no machine for a while.',
      items: CONDITION,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
    },
  },
};

interface Column {
  readonly name: string;
  readonly type?: 'integer' | 'date' | 'boolean';
  readonly path: string;
  readonly isWide?: true;
}

const READY = '.status.conditions[?(@.type=="Ready")]';
const COLUMNS: readonly Column[] = [
  { name: 'Min', type: 'integer', path: '.status.minReplicas' },
  { name: 'Max', type: 'integer', path: '.status.maxReplicas' },
  { name: 'Machines', type: 'integer', path: '.status.replicas' },
  { name: 'Up', type: 'integer', path: '.status.readyReplicas', isWide: true },
  { name: 'Autoscaling', type: 'boolean', path: '.spec.autoscaling', isWide: true },
  { name: 'Ready', path: `${READY}.status` },
  { name: 'Reason', path: `${READY}.reason`, isWide: true },
  { name: 'Message', path: `${READY}.message`, isWide: true },
  { name: 'Age', type: 'date', path: '.metadata.creationTimestamp' },
];

export function poolDefinition() {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'proxmoxpools.pvescaler.dev' },
    spec: {
      group: 'pvescaler.dev',
      scope: 'Namespaced',
      names: {
        kind: 'ProxmoxPool',
        listKind: 'ProxmoxPoolList',
        plural: 'proxmoxpools',
        singular: 'proxmoxpool',
        shortNames: ['pvp'],
        categories: ['pvescaler'],
      },
      versions: [
        {
          name: 'v1alpha1',
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: {
              specReplicasPath: '.spec.replicas',
              statusReplicasPath: '.status.replicas',
              labelSelectorPath: '.status.selector',
            },
          },
          additionalPrinterColumns: COLUMNS.map(({ name, type = 'string', path, isWide }) => ({
            name,
            type,
            jsonPath: path,
            ...(isWide && { priority: 1 }),
          })),
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: 'A pool of machines. Its name is metadata.name.',
              required: ['spec'],
              properties: { spec: poolSpecSchema(), status: STATUS },
              'x-kubernetes-validations': [poolNameRule()],
            },
          },
        },
      ],
    },
  };
}
