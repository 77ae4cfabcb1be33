// SPDX-License-Identifier: Apache-2.0
// Errors of API calls: a status, a message (with a trailing newline on the wire), and for 400 one text per
// parameter. A task reports only the message.

export class ApiError extends Error {
  readonly status: number;
  readonly errors: Readonly<Record<string, string>> | undefined;

  constructor(status: number, message: string, errors?: Readonly<Record<string, string>>) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.errors = errors;
  }
}

/** Status 500: every error except parameter and permission errors; "not found" is one, too. */
export function serverError(message: string): ApiError {
  return new ApiError(500, `${message}\n`);
}

export function parameterError(errors: Readonly<Record<string, string>>): ApiError {
  return new ApiError(400, 'Parameter verification failed.\n', errors);
}

export function permissionError(hint?: string): ApiError {
  return new ApiError(403, `Permission check failed${hint === undefined ? '' : ` (${hint})`}\n`);
}

/** Formats an error for a task's exit status or for a wrapping message. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const details =
    error instanceof ApiError && error.errors !== undefined
      ? Object.entries(error.errors).map(([name, text]) => `${name}: ${text}`)
      : [];
  const prefix =
    error instanceof ApiError && error.status !== 500 && error.status !== 0
      ? `${error.status} `
      : '';
  return [`${prefix}${error.message.trimEnd()}`, ...details].join('\n');
}
