// SPDX-License-Identifier: Apache-2.0
// Rights that a test takes from every user, and the SelfSubjectAccessReview that reports them.
import { ApiError } from '../storage/api-error.ts';
import { isObject, type Json, objectField, textField } from '../storage/objects.ts';
import { splitApiVersion } from '../storage/resources.ts';
import { splitPath } from './routes.ts';

export const ACCESS_REVIEW_PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** One verb on one resource, `pods/eviction` for a subresource. */
export interface AccessAttributes {
  readonly verb: string;
  /** Empty: the core group. */
  readonly group: string;
  readonly resource: string;
}

const VERBS: Readonly<Record<string, string>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

export class AccessRules {
  readonly #denied: AccessAttributes[] = [];

  /** From now on such requests receive 403. */
  deny(attributes: AccessAttributes): void {
    this.#denied.push(attributes);
  }

  /** Throws 403 for a request that was denied. */
  check(
    user: string,
    request: { readonly method: string; readonly isWatch: boolean },
    path: string,
  ) {
    if (this.#denied.length === 0 || !/^\/apis?\//.test(path)) return;
    const { apiVersion, plural, name, subresource } = splitPath(path);
    const { group } = splitApiVersion(apiVersion);
    const reading = request.isWatch ? 'watch' : name === '' ? 'list' : 'get';
    const verb = VERBS[request.method] ?? reading;
    const resource = [plural, subresource].filter(Boolean).join('/');
    if (this.#allows({ verb, group, resource })) return;
    throw new ApiError(
      403,
      'Forbidden',
      `${resource} is forbidden: User "${user}" cannot ${verb} resource "${resource}" in API group "${group}"`,
    );
  }

  /** The answer to a SelfSubjectAccessReview. */
  review(body: Json): object {
    const spec = objectField(isObject(body) ? body : {}, 'spec');
    const attributes = objectField(spec, 'resourceAttributes');
    const subresource = textField(attributes, 'subresource');
    const allowed = this.#allows({
      verb: textField(attributes, 'verb'),
      group: textField(attributes, 'group'),
      resource: [textField(attributes, 'resource'), subresource].filter(Boolean).join('/'),
    });
    return {
      kind: 'SelfSubjectAccessReview',
      apiVersion: 'authorization.k8s.io/v1',
      metadata: {},
      spec,
      status: { allowed },
    };
  }

  #allows({ verb, group, resource }: AccessAttributes): boolean {
    return !this.#denied.some(
      (denied) => denied.verb === verb && denied.group === group && denied.resource === resource,
    );
  }
}
