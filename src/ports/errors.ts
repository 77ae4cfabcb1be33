// SPDX-License-Identifier: Apache-2.0
// Errors as data: class, stable code, what makes a retry sensible, the operator's next step, the cause.
// Adapters translate foreign failures into these at once; nothing above an adapter sees another kind, and
// nobody branches on message text. A message never contains a secret: it may end in logs, events and gRPC.
import {
  type CodeOf,
  ERROR_CODES,
  type ErrorClass,
  type ErrorCode,
  type RetryKind,
} from './error-codes.ts';
import { SURFACES, type Surface } from './error-surface.ts';

export interface ErrorDetails {
  /** Replaces the code's own hint where the place that raises it knows better. */
  readonly hint?: string;
  readonly cause?: unknown;
  /** Plain facts for logs and `--json`: host, vmId, upid, needed and free bytes. */
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

  get surface(): Surface {
    return SURFACES[this.class];
  }
}

/** Narrows the constructor of each class to the codes of that class. */
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
export class InvalidConfig extends errorClass<'InvalidConfig'>() {}
export class InvalidRequest extends errorClass<'InvalidRequest'>() {}
export class UnsupportedVersion extends errorClass<'UnsupportedVersion'>() {}
export class TaskFailed extends errorClass<'TaskFailed'>() {}
export class StoreUnusable extends errorClass<'StoreUnusable'>() {}
export class LostLeadership extends errorClass<'LostLeadership'>() {}
export class Cancelled extends errorClass<'Cancelled'>() {}
export class Bug extends errorClass<'Bug'>() {}

/**
 * What reaches a rim (a CLI command, an RPC, the reconcile loop) as one of ours. A foreign error that got
 * this far was not translated by the adapter that met it: that is a fault of ours, and is reported as one.
 */
export function asPvescalerError(error: unknown): PvescalerError {
  if (error instanceof PvescalerError) return error;
  if (error instanceof Error && error.name === 'AbortError') {
    return new Cancelled('CANCELLED', 'cancelled', { cause: error });
  }
  const message = error instanceof Error ? error.message : String(error);
  return new Bug('BUG', message, { cause: error });
}

/** An error as plain data, for another thread. */
export interface PlainError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string;
  readonly facts: PvescalerError['facts'];
}

export function plainError(error: unknown): PlainError {
  const { code, message, hint, facts } = asPvescalerError(error);
  return { code, message, hint, facts };
}

export function revivedError({ code, message, ...details }: PlainError): PvescalerError {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the constructor is that of the code's class
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
  InvalidConfig,
  InvalidRequest,
  UnsupportedVersion,
  TaskFailed,
  StoreUnusable,
  LostLeadership,
  Cancelled,
  Bug,
};
