// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { ERROR_CLASSES, ERROR_CODES, type ErrorCode } from './error-codes.ts';
import { SURFACES } from './error-surface.ts';
import * as errors from './errors.ts';
import { asPvescalerError, NoCapacity, PvescalerError } from './errors.ts';

const codes = Object.keys(ERROR_CODES) as ErrorCode[];

describe('error codes', () => {
  it('each belong to a known class, and each class has at least one', () => {
    const used = new Set(codes.map((code) => ERROR_CODES[code].class));
    expect([...used].sort()).toEqual([...ERROR_CLASSES].sort());
  });

  it.each(codes)('%s is written in capitals and tells the operator what to do', (code) => {
    expect(code).toMatch(/^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/);
    expect(ERROR_CODES[code].hint).toMatch(/^[A-Za-z].*[.]$/);
    expect(['never', 'backoff', 'on-change']).toContain(ERROR_CODES[code].retry);
  });
});

describe('the surface of errors', () => {
  it('is defined for every class and nothing else', () => {
    expect(Object.keys(SURFACES).sort()).toEqual([...ERROR_CLASSES].sort());
  });

  it.each([...ERROR_CLASSES])('%s has a value in every column', (name) => {
    const { grpcStatus, httpStatus, exitCode, eventReason, metricLabel } = SURFACES[name];
    expect(grpcStatus).toBeGreaterThanOrEqual(1);
    expect(grpcStatus).toBeLessThanOrEqual(16);
    expect(grpcStatus, 'the Cluster Autoscaler gives UNIMPLEMENTED a meaning of its own').not.toBe(
      12,
    );
    expect(httpStatus).toBeGreaterThanOrEqual(400);
    expect(httpStatus).toBeLessThan(600);
    expect(exitCode).toBeGreaterThanOrEqual(1);
    expect(exitCode).toBeLessThan(256);
    expect(eventReason).toMatch(/^[A-Z][A-Za-z]+$/);
    expect(metricLabel).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });

  it('lets a script tell every class from the exit code alone', () => {
    const exits = ERROR_CLASSES.map((name) => SURFACES[name].exitCode);
    expect(new Set(exits).size).toBe(exits.length);
    const labels = ERROR_CLASSES.map((name) => SURFACES[name].metricLabel);
    expect(new Set(labels).size).toBe(labels.length);
  });
});

describe('error classes', () => {
  it('exist in code exactly as in the table', () => {
    const classes = Object.entries(errors)
      .filter(
        ([, value]) => typeof value === 'function' && value.prototype instanceof PvescalerError,
      )
      .map(([name]) => name);
    expect(classes.sort()).toEqual([...ERROR_CLASSES].sort());
  });

  it('carry code, class, retry, hint, facts, cause and surface', () => {
    const cause = new Error('ENOSPC');
    const error = new NoCapacity('NO_STORAGE_SPACE', 'local-lvm has 3 GiB free, 20 are needed', {
      cause,
      facts: { storage: 'local-lvm', freeBytes: 3 },
    });
    expect(error).toMatchObject({
      name: 'NoCapacity',
      class: 'NoCapacity',
      code: 'NO_STORAGE_SPACE',
      retry: 'on-change',
      hint: ERROR_CODES.NO_STORAGE_SPACE.hint,
      facts: { storage: 'local-lvm', freeBytes: 3 },
      cause,
      surface: SURFACES.NoCapacity,
    });
    expect(new NoCapacity('NO_HOST_FITS', 'full', { hint: 'Add a host.' }).hint).toBe(
      'Add a host.',
    );
  });

  it('turn a foreign error into a fault of ours, an abort into Cancelled, and keep our own', () => {
    const own = new NoCapacity('NO_HOST_FITS', 'full');
    expect(asPvescalerError(own)).toBe(own);
    expect(asPvescalerError(new TypeError('x is not a function'))).toMatchObject({
      code: 'BUG',
      message: 'x is not a function',
    });
    expect(asPvescalerError('text')).toMatchObject({ code: 'BUG', message: 'text' });
    const abort = new AbortController();
    abort.abort();
    expect(asPvescalerError(abort.signal.reason)).toMatchObject({ code: 'CANCELLED' });
  });
});
