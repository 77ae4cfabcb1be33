// SPDX-License-Identifier: Apache-2.0
// Errors as data: class, stable code, retry kind, the operator's next step, cause. Adapters translate every foreign
// error into one of these; code above them sees no other kind and never branches on message text. A message never
// contains a secret: it may appear in logs, Events and gRPC responses.
import {
  type CodeOf,
  ERROR_CODES,
  type ErrorClass,
  type ErrorCode,
  type RetryKind,
} from './error-codes.ts';
import { EXTERNAL_CODES, type ExternalCodes } from './external-codes.ts';

export interface ErrorDetails {
  /** Replaces the hint of the code with a more specific one. */
  readonly hint?: string;
  readonly cause?: unknown;
  /** Structured data for logs and `--json`: host, vmId, upid, needed and free bytes. */
  readonly facts?: Readonly<Record<string, string | number | boolean>>;
}

export abstract class PvescalerError extends Error {
  readonly code: ErrorCode;
  readonly hint: string;
  readonly facts: Readonly<Record<string, string | number | boolean>>;

  constructor(errorCode: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = errorCode;
    this.hint = details.hint ?? ERROR_CODES[errorCode].hint;
    this.facts = details.facts ?? {};
    this.name = ERROR_CODES[errorCode].class;
  }

  get class(): ErrorClass {
    return ERROR_CODES[this.code].class;
  }

  get retry(): RetryKind {
    return ERROR_CODES[this.code].retry;
  }

  get externalCodes(): ExternalCodes {
    return EXTERNAL_CODES[this.class];
  }
}

/** Narrows the constructor of each class to its own codes. */
function errorClass<C extends ErrorClass>() {
  return class extends PvescalerError {
    // oxlint-disable-next-line no-useless-constructor -- it narrows the code's type
    constructor(errorCode: CodeOf<C>, message: string, details?: ErrorDetails) {
      super(errorCode, message, details);
    }
  };
}

export class NotFound extends errorClass<'NotFound'>() {}
export class Conflict extends errorClass<'Conflict'>() {}
export class NoCapacity extends errorClass<'NoCapacity'>() {}
export class Unauthorized extends errorClass<'Unauthorized'>() {}
export class NotOwned extends errorClass<'NotOwned'>() {}
export class Unreachable extends errorClass<'Unreachable'>() {}
export class TimedOut extends errorClass<'TimedOut'>() {}
export class NotReady extends errorClass<'NotReady'>() {}
export class Undone extends errorClass<'Undone'>() {}
export class InvalidConfig extends errorClass<'InvalidConfig'>() {}
export class InvalidRequest extends errorClass<'InvalidRequest'>() {}
export class UnsupportedVersion extends errorClass<'UnsupportedVersion'>() {}
export class TaskFailed extends errorClass<'TaskFailed'>() {}
export class StoreUnusable extends errorClass<'StoreUnusable'>() {}
export class LostLeadership extends errorClass<'LostLeadership'>() {}
export class Cancelled extends errorClass<'Cancelled'>() {}
export class Bug extends errorClass<'Bug'>() {}

/**
 * Converts any error at an outer boundary (CLI command, RPC, reconcile loop). A foreign error here was not translated by
 * its adapter, so it is reported as a Bug.
 */
export function asPvescalerError(error: unknown): PvescalerError {
  if (error instanceof PvescalerError) return error;
  if (error instanceof Error && error.name === 'AbortError') {
    return new Cancelled('CANCELLED', 'the operation was cancelled', { cause: error });
  }
  if (!(error instanceof Error)) return new Bug('BUG', String(error), { cause: error });
  const bug = new Bug('BUG', error.message, { cause: error });
  // The log shows where it was thrown, not where it was caught.
  if (error.stack !== undefined) bug.stack = error.stack;
  return bug;
}

/** An error as plain data, to send to another thread. */
export interface SerializedError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string;
  readonly facts: PvescalerError['facts'];
}

export function serializeError(error: unknown): SerializedError {
  const { code, message, hint, facts } = asPvescalerError(error);
  return { code, message, hint, facts };
}

export function deserializeError({ code, message, ...details }: SerializedError): PvescalerError {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the constructor matches the code's class
  return new CLASSES[ERROR_CODES[code].class](code as never, message, details);
}

const CLASSES: Readonly<
  Record<ErrorClass, new (code: never, message: string, details?: ErrorDetails) => PvescalerError>
> = {
  NotFound,
  Conflict,
  NoCapacity,
  Unauthorized,
  NotOwned,
  Unreachable,
  TimedOut,
  NotReady,
  Undone,
  InvalidConfig,
  InvalidRequest,
  UnsupportedVersion,
  TaskFailed,
  StoreUnusable,
  LostLeadership,
  Cancelled,
  Bug,
};
