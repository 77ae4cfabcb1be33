// SPDX-License-Identifier: Apache-2.0

export interface StatusCause {
  readonly reason: string;
  readonly message: string;
  readonly field?: string;
}

/** An error response in the form of a Kubernetes `Status` object. */
export class ApiError extends Error {
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly StatusCause[];

  // oxlint-disable-next-line max-params -- the field order of a Status object
  constructor(
    status: number,
    reason: string,
    message: string,
    causes: readonly StatusCause[] = [],
  ) {
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

export function notFoundError(resource: string, name: string): ApiError {
  return new ApiError(404, 'NotFound', `${resource} "${name}" not found`);
}

export function conflictError(resource: string, name: string, reason: string): ApiError {
  return new ApiError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${resource} "${name}": ${reason}`,
  );
}

/** Status 422 with one cause per invalid field. */
export function invalidError(
  subject: string,
  problems: readonly (StatusCause & { readonly field: string })[],
): ApiError {
  const messages = problems.map(({ field, message }) => `${field}: ${message}`);
  const text = messages.length === 1 ? messages.join() : `[${messages.join(', ')}]`;
  return new ApiError(422, 'Invalid', `${subject} is invalid: ${text}`, problems);
}

export function expiredError(): ApiError {
  return new ApiError(410, 'Expired', 'too old resource version');
}
