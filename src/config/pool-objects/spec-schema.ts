// SPDX-License-Identifier: Apache-2.0
// The schema of a pool as Kubernetes requires it of custom resources (a structural schema), from the schema of the config.
// What it cannot express, such as a text or a mapping, is accepted and checked when the object is read.
import { MACHINES_MAX } from '../schema/pool-scaling.ts';
import { expandForms, findNodes, type SchemaNode } from '../schema/tree.ts';

export type OpenApiSchema = Readonly<Record<string, unknown>>;

/** Keys that only an object has. */
const OBJECT_KEYS: Readonly<Record<string, OpenApiSchema>> = {
  autoscaling: {
    type: 'boolean',
    default: true,
    description:
      'Whether the number of machines follows the pods, within `limits`. With `false` the pool has `replicas` machines, and kubectl scale sets them.',
  },
  replicas: {
    type: 'integer',
    minimum: 0,
    maximum: MACHINES_MAX,
    description:
      'Number of machines of a pool with `autoscaling: false`, within `limits`. Default: `limits.min`.',
  },
  deletionPolicy: {
    type: 'string',
    enum: ['Delete', 'Orphan'],
    default: 'Delete',
    description:
      'What happens to the machines when the object is deleted. `Delete`: they are drained and deleted, and the object is gone when they are. `Orphan`: the object is gone at once, and its machines stay as they are until a pool with its name is defined again.',
  },
};

const SPEC_RULES = [
  {
    rule: 'self.autoscaling == false || !has(self.replicas)',
    message: 'an autoscaler manages the pool: set autoscaling to false to set replicas',
    fieldPath: '.replicas',
  },
  {
    rule: '!has(self.replicas) || self.replicas >= self.limits.min && self.replicas <= self.limits.max',
    message: 'replicas must be between limits.min and limits.max',
    fieldPath: '.replicas',
  },
];

const LIMIT_RULES = [
  // The default of `limits` is judged before it has defaults of its own.
  {
    rule: '!has(self.min) || !has(self.max) || self.min <= self.max',
    message: 'min is more than max',
  },
];

/** Of `spec` of a ProxmoxPool. */
export function poolSpecSchema(): OpenApiSchema {
  const [pool] = findNodes(['pools', 0]);
  const entries = Object.entries(pool?.properties ?? {}).filter(([name]) => name !== 'name');
  const keys = convertProperties(Object.fromEntries(entries));
  return {
    type: 'object',
    description: 'The keys of an entry of `pools` in the config file, and a few of its own.',
    required: (pool?.required ?? []).filter((each) => each !== 'name'),
    properties: {
      ...OBJECT_KEYS,
      ...keys,
      limits: { ...keys['limits'], 'x-kubernetes-validations': LIMIT_RULES },
    },
    'x-kubernetes-validations': SPEC_RULES,
  };
}

/** Of the object itself: the name of a pool is part of machine names. */
export function poolNameRule(): { readonly rule: string; readonly message: string } {
  const [name] = findNodes(['pools', 0, 'name']);
  const { pattern, maxLength } = { pattern: '', maxLength: 0, ...name };
  return {
    rule: `self.metadata.name.matches('${pattern}') && size(self.metadata.name) <= ${maxLength}`,
    message: `the name of a pool is a lower-case DNS label of at most ${maxLength} characters`,
  };
}

function convertProperties(
  properties: Readonly<Record<string, SchemaNode>>,
): Record<string, OpenApiSchema> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, node]) => [name, convert(node)]),
  );
}

function convert(node: SchemaNode): OpenApiSchema {
  const description = describe(node);
  const shown = description === '' ? {} : { description };
  if (node.anyOf !== undefined) return { ...convertForms(node), ...shown };
  if (isAmount(node)) {
    const { pattern } = { pattern: undefined, ...node };
    return { ...shown, 'x-kubernetes-int-or-string': true, pattern, ...defaultOf(node) };
  }
  if (typeof node.type !== 'string') return { ...shown, ...ANY };
  return { ...shown, ...convertTyped(node), ...defaultOf(node) };
}

const ANY = { 'x-kubernetes-preserve-unknown-fields': true } as const;

function describe(node: SchemaNode): string {
  const { description = '', 'x-default': byDefault, 'x-forms': forms } = node;
  return [
    description,
    ...(forms === undefined ? [] : [`Written as ${forms}.`]),
    ...(byDefault === undefined ? [] : [`Default: ${byDefault}.`]),
  ]
    .join(' ')
    .trim();
}

/**
 * Forms that are all mappings become one mapping that has the keys of exactly one of them. Without defaults: the API server
 * would set those of every form.
 */
function convertForms(node: SchemaNode): OpenApiSchema {
  const forms = expandForms(node).slice(1);
  if (forms.some(({ type }) => type !== 'object')) return ANY;
  const properties: Readonly<Record<string, SchemaNode>> = Object.assign(
    {},
    ...forms.map((each) => each.properties),
  );
  const withoutDefaults = Object.entries(properties).map(([name, each]) => [
    name,
    { ...each, default: undefined },
  ]);
  return {
    type: 'object',
    properties: convertProperties(Object.fromEntries(withoutDefaults)),
    oneOf: forms.map(({ required }) => ({ required })),
  };
}

/** A quantity or a duration: a text, or a number. */
function isAmount({ type }: SchemaNode): boolean {
  return Array.isArray(type) && type.length === 2 && type.includes('string');
}

const KEPT_KEYWORDS = [
  'type',
  'enum',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'required',
];

function convertTyped(node: SchemaNode): OpenApiSchema {
  const { properties, items, additionalProperties } = node;
  const kept = Object.entries(node).filter(([keyword]) => KEPT_KEYWORDS.includes(keyword));
  return {
    ...Object.fromEntries(kept),
    ...(properties !== undefined && { properties: convertProperties(properties) }),
    ...(items !== undefined && { items: convert(items) }),
    ...(typeof additionalProperties === 'object' && {
      additionalProperties: convert(additionalProperties),
    }),
  };
}

function defaultOf(node: SchemaNode): OpenApiSchema {
  return node.default === undefined ? {} : { default: node.default };
}
