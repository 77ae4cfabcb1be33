// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Machine, MachineId } from '../../model/machine.ts';

import { toInstance } from './instances.ts';

function shownMessage(message: string): string {
  const machine: Machine = {
    id: '00000000-0000-4000-8000-000000000001' as MachineId,
    pool: 'workers',
    phase: 'failed',
    phaseSince: 0,
    requestedAt: 0,
    size: { cpu: 2, memoryBytes: 2 ** 31, diskBytes: 2 ** 34 },
    attempts: 0,
    failure: { code: 'TASK_FAILED', message, at: 0, phase: 'creating' },
  };
  return toInstance(machine, false)?.status?.errorInfo?.errorMessage ?? '';
}

it('truncates the message of a failure to 256 bytes at a character boundary', () => {
  expect(shownMessage('x'.repeat(256))).toBe('x'.repeat(256));
  expect(shownMessage('x'.repeat(257))).toBe(`${'x'.repeat(253)}…`);
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 600 }), (message) => {
      const shown = shownMessage(message);
      const bytes = Buffer.byteLength(shown);
      expect(bytes).toBeLessThanOrEqual(256);
      if (shown === message) return;
      expect(Buffer.byteLength(message)).toBeGreaterThan(256);
      expect(bytes).toBeGreaterThan(250);
      expect(message.startsWith(shown.slice(0, -1))).toBe(true);
    }),
  );
});
