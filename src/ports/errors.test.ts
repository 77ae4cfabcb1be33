// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { ERROR_CLASSES, ERROR_CODES, type ErrorCode } from './error-codes.ts';
import * as errors from './errors.ts';
import { asPvescalerError, NoCapacity, PvescalerError } from './errors.ts';
import { EXTERNAL_CODES } from './external-codes.ts';

const codes = Object.keys(ERROR_CODES) as ErrorCode[];

describe('error codes', () => {
  it('cover every error class', () => {
    const used = new Set(codes.map((code) => ERROR_CODES[code].class));
    expect([...used].sort()).toEqual([...ERROR_CLASSES].sort());
  });

  it.each(codes)('%s is in upper snake case and has a hint', (code) => {
    expect(code).toMatch(/^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/);
    expect(ERROR_CODES[code].hint).toMatch(/^[A-Za-z].*[.]$/);
    expect(['never', 'backoff', 'on-change']).toContain(ERROR_CODES[code].retry);
  });
});

describe('external codes', () => {
  it('are defined for every error class and nothing else', () => {
    expect(Object.keys(EXTERNAL_CODES).sort()).toEqual([...ERROR_CLASSES].sort());
  });

  it.each([...ERROR_CLASSES])('of %s are valid', (name) => {
    const { grpcStatus, httpStatus, exitCode, eventReason, metricLabel } = EXTERNAL_CODES[name];
    expect(grpcStatus).toBeGreaterThanOrEqual(1);
    expect(grpcStatus).toBeLessThanOrEqual(16);
    expect(
      grpcStatus,
      'the Cluster Autoscaler treats UNIMPLEMENTED as "use the defaults"',
    ).not.toBe(12);
    expect(httpStatus).toBeGreaterThanOrEqual(400);
    expect(httpStatus).toBeLessThan(600);
    expect(exitCode).toBeGreaterThanOrEqual(1);
    expect(exitCode).toBeLessThan(256);
    expect(eventReason).toMatch(/^[A-Z][A-Za-z]+$/);
    expect(metricLabel).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });

  it('are unique per class for exit code and metric label', () => {
    const exits = ERROR_CLASSES.map((name) => EXTERNAL_CODES[name].exitCode);
    expect(new Set(exits).size).toBe(exits.length);
    const labels = ERROR_CLASSES.map((name) => EXTERNAL_CODES[name].metricLabel);
    expect(new Set(labels).size).toBe(labels.length);
  });
});

describe('error classes', () => {
  it('match the table of error classes', () => {
    const classes = Object.entries(errors)
      .filter(
        ([, value]) => typeof value === 'function' && value.prototype instanceof PvescalerError,
      )
      .map(([name]) => name);
    expect(classes.sort()).toEqual([...ERROR_CLASSES].sort());
  });

  it('carry code, class, retry, hint, facts, cause and external codes', () => {
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
      externalCodes: EXTERNAL_CODES.NoCapacity,
    });
    expect(new NoCapacity('NO_HOST_FITS', 'full', { hint: 'Add a host.' }).hint).toBe(
      'Add a host.',
    );
  });

  it('convert a foreign error to Bug and an abort to Cancelled, and keep our own errors', () => {
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
