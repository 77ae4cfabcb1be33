// SPDX-License-Identifier: Apache-2.0
// Validation and defaults of CustomResourceDefinitions.
import {
  isObject,
  type JsonObject,
  listField,
  objectField,
  textField,
  textList,
} from './objects.ts';
import type { FieldProblem } from './schema-validation.ts';

export function defaultDefinition(body: JsonObject): JsonObject {
  const spec = objectField(body, 'spec');
  const names = objectField(spec, 'names');
  const kind = textField(names, 'kind');
  const storage = listField(spec, 'versions').filter((version) => version['storage'] === true);
  return {
    ...body,
    spec: {
      conversion: { strategy: 'None' },
      ...spec,
      names: { singular: kind.toLowerCase(), listKind: `${kind}List`, ...names },
    },
    status: {
      conditions: null,
      acceptedNames: { plural: '', kind: '' },
      ...objectField(body, 'status'),
      storedVersions: [
        ...new Set([
          ...textList(objectField(body, 'status'), 'storedVersions'),
          ...storage.map((version) => textField(version, 'name')),
        ]),
      ],
    },
  };
}

export function checkDefinition(name: string, body: JsonObject): readonly FieldProblem[] {
  const spec = objectField(body, 'spec');
  const versions = listField(spec, 'versions');
  const problems: FieldProblem[] = [];
  const expected = `${textField(objectField(spec, 'names'), 'plural')}.${textField(spec, 'group')}`;
  const reason = 'FieldValueInvalid';
  if (name !== expected) {
    const message = `Invalid value: "${name}": must be spec.names.plural+"."+spec.group`;
    problems.push({ reason, message, field: 'metadata.name' });
  }
  for (const [index, version] of versions.entries()) {
    if (isObject(objectField(version, 'schema')['openAPIV3Schema'])) continue;
    const field = `spec.versions[${index}].schema.openAPIV3Schema`;
    problems.push({ reason: 'FieldValueRequired', message: 'Required value', field });
  }
  if (versions.filter((version) => version['storage'] === true).length !== 1) {
    const message = 'Invalid value: must have exactly one version marked as storage version';
    problems.push({ reason, message, field: 'spec.versions' });
  }
  return problems;
}
