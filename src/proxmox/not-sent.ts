// SPDX-License-Identifier: Apache-2.0
import { PvescalerError, TimedOut, Unreachable } from '../ports/errors.ts';

/**
 * For work that precedes a request: the login, reading the version, finding the VM's host. If it fails, the request itself
 * was not sent, so the error gets `requestSent: false`.
 */
export async function rejectAsNotSent<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof PvescalerError ? asNotSent(error) : error;
  }
}

function asNotSent(error: PvescalerError): PvescalerError {
  const { hint } = error;
  const details = { hint, cause: error, facts: { ...error.facts, requestSent: false } };
  if (error.class === 'TimedOut') return new TimedOut('REQUEST_TIMED_OUT', error.message, details);
  if (error.code === 'PVE_HOST_UNREACHABLE') {
    return new Unreachable('PVE_HOST_UNREACHABLE', error.message, details);
  }
  if (error.code !== 'PVE_UNREACHABLE') return error;
  return new Unreachable('PVE_UNREACHABLE', error.message, details);
}
