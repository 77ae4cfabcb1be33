// SPDX-License-Identifier: Apache-2.0
// Rights that a test takes from every user, and the reviews that report them and the user.
import { ApiError } from '../storage/api-error.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  objectField,
  textField,
} from '../storage/objects.ts';
import { splitApiVersion } from '../storage/resources.ts';
import type { User } from './authentication.ts';
import { splitPath } from './routes.ts';

const REVIEW_PATH =
  /^\/apis\/(authentication|authorization)\.k8s\.io\/v1\/(selfsubject(?:access|rules)?reviews)$/;

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

/** What is denied by a test is not subtracted. */
const ALL_RULES = {
  resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
  incomplete: false,
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

  /** The answer to a review of what the user is or may do; undefined when the path is none. */
  async review(
    path: string,
    user: User,
    readBody: () => Promise<Json>,
  ): Promise<object | undefined> {
    const [, group = '', plural] = REVIEW_PATH.exec(path) ?? [];
    if (plural === undefined) return undefined;
    const body = await readBody();
    const spec = objectField(isObject(body) ? body : {}, 'spec');
    const common = { apiVersion: `${group}.k8s.io/v1`, metadata: {}, spec };
    switch (plural) {
      case 'selfsubjectaccessreviews': {
        const status = { allowed: this.#allowsReviewed(objectField(spec, 'resourceAttributes')) };
        return { kind: 'SelfSubjectAccessReview', ...common, status };
      }
      case 'selfsubjectrulesreviews':
        return { kind: 'SelfSubjectRulesReview', ...common, status: ALL_RULES };
      default:
        return { kind: 'SelfSubjectReview', ...common, status: { userInfo: user } };
    }
  }

  #allowsReviewed(attributes: JsonObject): boolean {
    const resource = [textField(attributes, 'resource'), textField(attributes, 'subresource')];
    return this.#allows({
      verb: textField(attributes, 'verb'),
      group: textField(attributes, 'group'),
      resource: resource.filter(Boolean).join('/'),
    });
  }

  #allows({ verb, group, resource }: AccessAttributes): boolean {
    return !this.#denied.some(
      (denied) => denied.verb === verb && denied.group === group && denied.resource === resource,
    );
  }
}
