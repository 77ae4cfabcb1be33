// SPDX-License-Identifier: Apache-2.0
import { PvescalerError, TimedOut, Unreachable } from '../ports/errors.ts';

/**
 * For what a call needs before it is sent (a login, the version, the VM's host). When that fails on the way,
 * the call itself certainly had no effect, whatever became of the question before it.
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
