// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine } from '../model/machine.ts';
import { aMachineId } from '../ports/fakes/sample-records.ts';
import { failedMachinesError } from './run-pool-scale.ts';

function aFailedMachine(code: string, message: string): Machine {
  return {
    id: aMachineId(1),
    pool: 'workers',
    phase: 'failed',
    phaseSince: 0,
    requestedAt: 0,
    size: { cpu: 1, memoryBytes: 1, diskBytes: 1 },
    attempts: 0,
    failure: { code, message, at: 0, phase: 'creating' },
  };
}

describe('the error of a command whose machines failed', () => {
  it.each([
    ['NO_STORAGE_SPACE', 'NoCapacity', 6],
    ['PERMISSION_MISSING', 'Unauthorized', 7],
    ['PROVISION_TIMED_OUT', 'TimedOut', 10],
    ['TASK_FAILED', 'TaskFailed', 12],
  ])('has code, class and exit code of the cause %s', (code, kind, exitCode) => {
    const error = failedMachinesError([aFailedMachine(code, 'the cause')], 3);
    expect(error).toMatchObject({ code, class: kind, externalCodes: { exitCode } });
    expect(error.message).toBe('1 of 3 machines failed: the cause');
    expect(error.hint).toContain(`pvescaler machine show ${aMachineId(1)}`);
  });

  it('is TASK_FAILED for a reason that is not an error code', () => {
    const error = failedMachinesError([aFailedMachine('HOSTS_BUSY', 'all hosts are busy')], 1);
    expect(error.code).toBe('TASK_FAILED');
  });
});
