// SPDX-License-Identifier: Apache-2.0

export interface StatusCause {
  readonly reason: string;
  readonly message: string;
  readonly field?: string;
}

/** The object that an error is about. `kind` may be the name of the resource instead. */
interface StatusSubject {
  readonly name: string;
  readonly group?: string;
  readonly kind: string;
}

/** Of a resource or kind with its group: `widgets.example.com`. */
function subjectOf(qualified: string, name: string): StatusSubject {
  const [kind = '', ...group] = qualified.split('.');
  return { name, ...(group.length > 0 && { group: group.join('.') }), kind };
}

/** An error response in the form of a Kubernetes `Status` object. */
export class ApiError extends Error {
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly StatusCause[];
  readonly #subject: StatusSubject | undefined;

  // oxlint-disable-next-line max-params -- the field order of a Status object
  constructor(
    status: number,
    reason: string,
    message: string,
    causes: readonly StatusCause[] = [],
    subject?: StatusSubject,
  ) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.causes = causes;
    this.#subject = subject;
  }

  toStatus(): object {
    const subject = this.#subject;
    const causes = this.causes.length > 0 ? { causes: this.causes } : undefined;
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      ...(this.reason !== '' && { reason: this.reason }),
      ...((subject ?? causes) && { details: { ...subject, ...causes } }),
      code: this.status,
    };
  }
}

/** An error that is sent as plain text. */
export class PlainError extends ApiError {
  constructor(status: number, message: string) {
    super(status, '', message);
  }
}

export function notFoundError(resource: string, name: string): ApiError {
  const message = `${resource} "${name}" not found`;
  return new ApiError(404, 'NotFound', message, [], subjectOf(resource, name));
}

export function conflictError(resource: string, name: string, reason: string): ApiError {
  const message = `Operation cannot be fulfilled on ${resource} "${name}": ${reason}`;
  return new ApiError(409, 'Conflict', message, [], subjectOf(resource, name));
}

export function existsError(resource: string, name: string): ApiError {
  const message = `${resource} "${name}" already exists`;
  return new ApiError(409, 'AlreadyExists', message, [], subjectOf(resource, name));
}

/** Status 422 with one cause per invalid field. */
export function invalidError(
  subject: string,
  problems: readonly (StatusCause & { readonly field: string })[],
): ApiError {
  const messages = problems.map(({ field, message }) => `${field}: ${message}`);
  const text = messages.length === 1 ? messages.join() : `[${messages.join(', ')}]`;
  const [, kind = '', name = ''] = /^(\S+) "(.*)"$/.exec(subject) ?? [];
  const message = `${subject} is invalid: ${text}`;
  return new ApiError(422, 'Invalid', message, problems, subjectOf(kind, name));
}

export function expiredError(): ApiError {
  return new ApiError(410, 'Expired', 'too old resource version');
}
