// SPDX-License-Identifier: Apache-2.0
// Whether the API server has the definition of ProxmoxPool that this release expects. The rights are in kubernetes.ts.
import { type Config, poolDefinition } from '../config/index.ts';
import type { ClusterInspector } from '../ports/inspection.ts';
import { type Check, failure, ok } from './check.ts';
import { GROUP_VERSION, KUBERNETES_GROUP } from './kubernetes.ts';

const INSTALL = `Install the definition of this release:
kubectl apply -f deploy/crds/proxmoxpools.yaml`;
const MAX_NAMED = 5;

export function poolObjectsCheck(inspector: ClusterInspector, { cluster }: Config): Check {
  return {
    name: 'pool-objects',
    group: KUBERNETES_GROUP,
    run: async (signal) => {
      if (!cluster.poolObjects) return ok('pools are only in the config file');
      const { kind } = poolDefinition().spec.names;
      const served = await inspector.schema(GROUP_VERSION, kind, { signal });
      if (served === undefined)
        return failure(`the API server does not know ${kind} of ${GROUP_VERSION}`, INSTALL);
      const expected = poolDefinition().spec.versions[0]?.schema.openAPIV3Schema;
      const missing = listMissing(expected, served);
      if (missing.length === 0) return ok(`${kind} objects in namespace ${cluster.namespace}`);
      const named = missing.slice(0, MAX_NAMED).join(', ');
      const more = missing.length > MAX_NAMED ? ` and ${missing.length - MAX_NAMED} more` : '';
      return failure(
        `the definition of ${kind} is of an older release: it does not know ${named}${more}`,
        INSTALL,
      );
    },
  };
}

/** Paths of the fields and values that only `expected` has. A newer definition may have more: it is installed first. */
function listMissing(expected: unknown, served: unknown, path = ''): readonly string[] {
  const fields = fieldsOf(served);
  const values = enumOf(served);
  return [
    ...enumOf(expected)
      .filter((value) => values.length > 0 && !values.includes(value))
      .map((value) => `${path} ${String(value)}`),
    ...Object.entries(fieldsOf(expected)).flatMap(([name, schema]) => {
      const at = path === '' ? name : `${path}.${name}`;
      return fields[name] === undefined ? [at] : listMissing(schema, fields[name], at);
    }),
  ];
}

/** Of a mapping, of the entries of a list, or of the values of a mapping with any keys. */
function fieldsOf(schema: unknown): Readonly<Record<string, unknown>> {
  const { properties, items, additionalProperties } = asRecord(schema);
  return {
    ...asRecord(properties),
    ...(items !== undefined && { '[]': items }),
    ...(additionalProperties !== undefined && { '*': additionalProperties }),
  };
}

function enumOf(schema: unknown): readonly unknown[] {
  const values = asRecord(schema)['enum'];
  return Array.isArray(values) ? values : [];
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
