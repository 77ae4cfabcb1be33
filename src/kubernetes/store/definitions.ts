// SPDX-License-Identifier: Apache-2.0
// The CustomResourceDefinitions as objects; `npm run gen` writes deploy/crds/ and the chart's crds/ from them.
import { GROUP, type ObjectKind, type PrinterColumn, RECORD_KINDS, VERSION } from './kinds.ts';
import type { Schema } from './schema.ts';

/** A CustomResourceDefinition of one version. */
export interface ResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

export const RESOURCE_DEFINITIONS: readonly ResourceDefinition[] = RECORD_KINDS.map(definitionOf);

function definitionOf(kind: ObjectKind): ResourceDefinition {
  const { plural } = kind;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural,
        singular: kind.kind.toLowerCase(),
        shortNames: [kind.shortName],
        categories: ['pvescaler'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          ...(kind.hasStatusSubresource && { subresources: { status: {} } }),
          additionalPrinterColumns: kind.columns.map(columnOf),
          schema: { openAPIV3Schema: schemaOf(kind) },
        },
      ],
    },
  };
}

function columnOf({ name, type, path, description, isWide }: PrinterColumn): object {
  return { name, type, jsonPath: path, description, ...(isWide && { priority: 1 }) };
}

/** Of an object of this kind. */
export function schemaOf({ description, spec, status, specRules }: ObjectKind): Schema {
  const rules = specRules.length > 0 && { 'x-kubernetes-validations': specRules };
  return {
    type: 'object',
    description,
    properties: {
      ...(spec && { spec: { ...spec, ...rules } }),
      ...(status && { status }),
    },
    ...(spec && {
      'x-kubernetes-validations': [
        { rule: '!has(oldSelf.spec) || has(self.spec)', message: 'spec cannot be removed' },
      ],
    }),
  };
}
