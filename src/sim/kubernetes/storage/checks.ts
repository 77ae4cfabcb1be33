// SPDX-License-Identifier: Apache-2.0
// What the API server refuses, with its texts.
import { ApiError, conflictError, invalidError } from './api-error.ts';
import type { ObjectAddress } from './object-store.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  objectField,
  readPath,
  type SimObject,
  textField,
  withoutTypeAndMetadata,
} from './objects.ts';
import { type CustomResource, qualifiedKind } from './resources.ts';
import { type FieldProblem, validateBySchema } from './schema-validation.ts';
import { findUnknownFields } from './structural-schema.ts';

const NAME = /^[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const SUBDOMAIN_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

export function checkDeletePreconditions(
  { resource, name }: ObjectAddress,
  { metadata }: SimObject,
  { uid, version }: { readonly uid: string; readonly version: string },
): void {
  const mismatch = (field: string, [given, found]: readonly [string, string], why: string) => {
    const reason = `the ${field} in the precondition (${given}) does not match the ${field} in record (${found}). The object might have been ${why}`;
    return conflictError(qualifiedKind(resource), name, reason);
  };
  if (uid !== '' && uid !== metadata.uid) {
    throw mismatch('UID', [uid, metadata.uid], 'deleted and then recreated');
  }
  const { resourceVersion } = metadata;
  if (version !== '' && version !== resourceVersion) {
    throw mismatch('ResourceVersion', [version, resourceVersion], 'modified');
  }
}

/** An apply of a field that the schema does not declare fails. Other writes drop the field. */
export function checkDeclared({ resource, name }: ObjectAddress, config: JsonObject): void {
  if (resource.custom === undefined) return;
  const [unknown] = findUnknownFields(resource.custom.schema, config);
  if (unknown === undefined) return;
  const namespace = textField(objectField(config, 'metadata'), 'namespace');
  const kind = `${resource.apiVersion}, Kind=${resource.kind}`;
  const message = `failed to create typed patch object (${namespace}/${name}; ${kind}): .${unknown}: field not declared in schema`;
  throw new ApiError(500, '', message);
}

/** Problems of a new or changed custom object. */
export function checkCustom(
  { schema, hasRules, scale }: CustomResource,
  after: JsonObject,
  old?: SimObject,
): readonly FieldProblem[] {
  const part = { value: withoutTypeAndMetadata(after), field: '', hasRules };
  const former = old && { old: withoutTypeAndMetadata(old) };
  const problems = validateBySchema(schema, { ...part, ...former });
  return scale === undefined ? problems : [...problems, ...checkReplicas(after, scale.spec)];
}

function checkReplicas(object: JsonObject, path: readonly string[]): readonly FieldProblem[] {
  const replicas = readPath(object, path);
  if (typeof replicas !== 'number' || replicas >= 0) return [];
  const message = `Invalid value: ${replicas}: should be a non-negative integer`;
  return [{ reason: 'FieldValueInvalid', message, field: `.${path.join('.')}` }];
}

export function checkApplyConfig({ resource, name }: ObjectAddress, body: Json): JsonObject {
  const config = isObject(body) ? body : {};
  const { apiVersion, kind } = {
    apiVersion: textField(config, 'apiVersion'),
    kind: textField(config, 'kind'),
  };
  const metadata = objectField(config, 'metadata');
  if (apiVersion !== resource.apiVersion || kind !== resource.kind) {
    const group = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
    throw new ApiError(400, 'BadRequest', `invalid object type: ${group}, Kind=${kind}`);
  }
  if (metadata['managedFields'] !== undefined) {
    throw new ApiError(400, 'BadRequest', 'metadata.managedFields must be nil');
  }
  const given = textField(metadata, 'name') || name;
  if (given === name) return config;
  const message = `the name of the object (${given}) does not match the name on the URL (${name})`;
  throw new ApiError(400, 'BadRequest', message);
}

export function checkNameAndKind({ resource, name }: ObjectAddress, body: JsonObject): void {
  if (name === '') {
    throw invalidError(`${qualifiedKind(resource)} ""`, [
      {
        reason: 'FieldValueRequired',
        message: 'Required value: name or generateName is required',
        field: 'metadata.name',
      },
    ]);
  }
  if (!(resource.custom === undefined ? NAME : SUBDOMAIN).test(name)) {
    const message = `Invalid value: "${name}": ${SUBDOMAIN_RULE}`;
    throwIfInvalid({ resource, name }, [
      { reason: 'FieldValueInvalid', message, field: 'metadata.name' },
    ]);
  }
  const kind = textField(body, 'kind') || resource.kind;
  if (kind !== resource.kind) {
    const message = `Invalid value: "${kind}": must be ${resource.kind}`;
    const problems = [{ reason: 'FieldValueInvalid', message, field: 'kind' }];
    if (resource.custom !== undefined)
      throwIfInvalid({ resource: { ...resource, kind }, name }, problems);
    throw new ApiError(400, 'BadRequest', 'the object provided is unrecognized');
  }
}

export function throwIfInvalid(
  { resource, name }: Pick<ObjectAddress, 'resource' | 'name'>,
  problems: readonly FieldProblem[],
): void {
  if (problems.length > 0) throw invalidError(`${qualifiedKind(resource)} "${name}"`, problems);
}

/** Only for patches. A `PUT` with another uid fails with a precondition conflict instead. */
export function checkUid({ metadata }: SimObject, after: JsonObject): readonly FieldProblem[] {
  const uid = textField(objectField(after, 'metadata'), 'uid');
  if (uid === metadata.uid) return [];
  const message = `Invalid value: "${uid}": field is immutable`;
  return [{ reason: 'FieldValueInvalid', message, field: 'metadata.uid' }];
}

export function checkProviderId(
  { resource }: ObjectAddress,
  current: SimObject,
  after: JsonObject,
): readonly FieldProblem[] {
  if (resource.kind !== 'Node') return [];
  const before = textField(objectField(current, 'spec'), 'providerID');
  if (before === '' || before === textField(objectField(after, 'spec'), 'providerID')) return [];
  const message = 'Forbidden: node updates may not change providerID except from "" to valid';
  return [{ reason: 'FieldValueForbidden', message, field: 'spec.providerID' }];
}
