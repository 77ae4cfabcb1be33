// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { ForecastReader } from '../fleet/index.ts';
import { regionStaleness } from './region-staleness.ts';

const NOW = 1_000_000;

interface Reading {
  readonly takenAt?: number;
  readonly error?: string;
  readonly isComplete?: boolean;
}

function staleness({ takenAt, error, isComplete = true }: Reading): string | undefined {
  const forecast: ForecastReader = {
    isComplete: () => isComplete,
    takenAt: () => takenAt,
    readError: () => error,
    hasVm: () => false,
    headroom: () => undefined,
  };
  return regionStaleness(forecast, NOW)('lab');
}

it('decides by a region that was read within 90 seconds, also when the last attempt failed', () => {
  expect(staleness({ takenAt: NOW - 90_000 })).toBeUndefined();
  expect(staleness({ takenAt: NOW, error: 'no answer' })).toBeUndefined();
});

it('decides nothing by a region that was never read, long ago, or whose VMs may have no record', () => {
  expect(staleness({})).toBe('it has not been read yet');
  expect(staleness({ error: 'no answer' })).toBe('no answer');
  expect(staleness({ takenAt: NOW - 90_001 })).toBe('its last reading is 90s old');
  expect(staleness({ takenAt: NOW - 90_001, error: 'no answer' })).toBe('no answer');
  expect(staleness({ takenAt: NOW, isComplete: false })).toBe(
    'not all its VMs have been inspected yet',
  );
});
