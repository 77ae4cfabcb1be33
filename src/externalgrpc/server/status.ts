// SPDX-License-Identifier: Apache-2.0

/** gRPC status codes, by the names used in metrics. */
export const STATUS = {
  OK: 0,
  Canceled: 1,
  Unknown: 2,
  InvalidArgument: 3,
  DeadlineExceeded: 4,
  NotFound: 5,
  AlreadyExists: 6,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  FailedPrecondition: 9,
  Aborted: 10,
  OutOfRange: 11,
  Unimplemented: 12,
  Internal: 13,
  Unavailable: 14,
  DataLoss: 15,
  Unauthenticated: 16,
} as const;

export type StatusName = keyof typeof STATUS;

/** A status other than OK. The message is sent to the caller. */
export class GrpcError extends Error {
  readonly status: StatusName;

  constructor(status: StatusName, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'GrpcError';
    this.status = status;
  }
}

const NAMES: ReadonlyMap<number, StatusName> = new Map(
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
  (Object.entries(STATUS) as [StatusName, number][]).map(([name, number]) => [number, name]),
);

export function statusName(number: number): StatusName {
  return NAMES.get(number) ?? 'Unknown';
}

/** Percent-encodes the UTF-8 bytes of everything except printable ASCII. */
export function encodeHeaderText(message: string): string {
  const encode = (characters: string) => encodeURIComponent(characters.toWellFormed());
  return message.replace(/[^\u0020-\u0024\u0026-\u007e]+/g, encode);
}
