// SPDX-License-Identifier: Apache-2.0

export interface Cause {
  readonly reason: string;
  readonly message: string;
  readonly field?: string;
}

/** A refusal, as the API server words it. */
export class ApiError extends Error {
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly Cause[];

  // oxlint-disable-next-line max-params -- in the order in which they stand in a Status
  constructor(status: number, reason: string, message: string, causes: readonly Cause[] = []) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.causes = causes;
  }

  toStatus(): object {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.causes.length > 0 && { details: { causes: this.causes } }),
      code: this.status,
    };
  }
}

export function notFound(what: string, name: string): ApiError {
  return new ApiError(404, 'NotFound', `${what} "${name}" not found`);
}

export function conflict(what: string, name: string, why: string): ApiError {
  return new ApiError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${what} "${name}": ${why}`,
  );
}

/** A value that may not be so, with what is wrong with which field. */
export function invalid(
  what: string,
  problems: readonly (Cause & { readonly field: string })[],
): ApiError {
  const words = problems.map(({ field, message }) => `${field}: ${message}`);
  const all = words.length === 1 ? words.join() : `[${words.join(', ')}]`;
  return new ApiError(422, 'Invalid', `${what} is invalid: ${all}`, problems);
}

export function expired(): ApiError {
  return new ApiError(410, 'Expired', 'too old resource version');
}
