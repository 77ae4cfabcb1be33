// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { PoolStatus } from '../fleet/index.ts';
import type { PoolObject } from '../ports/pool-objects.ts';
import { type PoolObjectFacts, poolObjectStatus } from './pool-object-status.ts';

const NOW = Date.parse('2026-03-01T12:00:00.250Z');
const OBJECT: PoolObject = {
  name: 'web',
  uid: 'u',
  version: '1',
  generation: 3,
  createdAt: 0,
  isTerminating: false,
  isHeld: true,
  spec: { groupLabel: 'example.com/pool' },
  status: undefined,
};
const POOL: PoolStatus = {
  name: 'web',
  limits: { min: 1, max: 4, cpu: 0, memoryBytes: 0 },
  atLimit: undefined,
  target: 2,
  ready: 1,
  nodeGroups: [],
  unread: {},
  missing: 0,
  failed: 0,
  deleting: 0,
  backoff: undefined,
  pause: undefined,
  lost: undefined,
};
const FACTS: PoolObjectFacts = {
  object: OBJECT,
  refusal: undefined,
  pool: POOL,
  isFixed: false,
  machines: 2,
  unplaced: undefined,
  blockers: [],
  now: NOW,
};

function conditionsOf(facts: Partial<PoolObjectFacts>) {
  const { conditions } = poolObjectStatus({ ...FACTS, ...facts });
  return Object.fromEntries(
    conditions.map(({ type, status, reason, message }) => [
      type,
      `${status} ${reason}: ${message}`,
    ]),
  );
}

describe('the status of a ProxmoxPool', () => {
  it('has the machines, the limits that apply and the selector of the Nodes', () => {
    expect(poolObjectStatus(FACTS)).toMatchObject({
      observedGeneration: 3,
      replicas: 2,
      readyReplicas: 1,
      minReplicas: 1,
      maxReplicas: 4,
      selector: 'example.com/pool=web',
    });
  });

  it('says of a pool in use whether it is backed off, full or paused', () => {
    expect(conditionsOf({})).toMatchObject({
      Ready: 'True InUse: The pool is in use',
      BackedOff: expect.stringMatching(/^False NoFailures/),
      AtCapacity: expect.stringMatching(/^False BelowMaximum/),
      Paused: expect.stringMatching(/^False NotPaused/),
    });
    const until = NOW + 60_000;
    const backoff = { failures: 2, since: 0, until, code: 'TASK_FAILED', message: 'no space' };
    const pause = { since: 0, until, reason: '3 machines helped no pod' };
    expect(conditionsOf({ pool: { ...POOL, target: 4, backoff, pause } })).toMatchObject({
      BackedOff:
        'True MachinesFailed: No machine is created before 2026-03-01T12:01:00Z: TASK_FAILED: no space',
      AtCapacity: 'True AtMaximum: The pool has its maximum of 4 machines',
      Paused:
        'True NoHelp: No machine is requested before 2026-03-01T12:01:00Z: 3 machines helped no pod',
    });
  });

  it('is at capacity when a limit of vCPUs or memory allows no machine more', () => {
    const atLimit = 'pool web is limited to 8 vCPUs; 3 machines would have 12';
    expect(conditionsOf({ pool: { ...POOL, atLimit } })).toMatchObject({
      AtCapacity: `True AtMaximum: ${atLimit}`,
    });
  });

  it('knows nothing of a pool that is not in use', () => {
    const unknown = expect.stringMatching(/^Unknown NotInUse/);
    expect(conditionsOf({ pool: undefined })).toMatchObject({
      Ready: expect.stringMatching(/^False NotApplied/),
      BackedOff: unknown,
      AtCapacity: unknown,
      Paused: unknown,
    });
    const refusal = { reason: 'Invalid', message: 'spec.size: is missing' } as const;
    expect(conditionsOf({ pool: undefined, refusal })).toMatchObject({
      Ready: 'False Invalid: spec.size: is missing',
    });
  });

  it('is at capacity with a fixed size only when hosts are full', () => {
    const pool = { ...POOL, target: 4 };
    expect(conditionsOf({ pool, isFixed: true })).toMatchObject({
      AtCapacity: expect.stringMatching(/^False FixedSize/),
    });
    const unplaced = { code: 'NO_CAPACITY', message: '6.2 GiB free' };
    expect(conditionsOf({ pool, isFixed: true, unplaced })).toMatchObject({
      AtCapacity: 'True NoHostCapacity: 6.2 GiB free',
    });
  });

  it('says of a deleted pool what is left of it', () => {
    const object = { ...OBJECT, isTerminating: true };
    expect(conditionsOf({ object, blockers: ['pod a blocks'] })).toMatchObject({
      Ready: 'False Terminating: 2 machines to drain and delete; pod a blocks',
    });
  });

  it('is the same while nothing happens, but for the time of a transition', () => {
    const unplaced = { code: 'NO_CAPACITY', message: '6.2 GiB free' };
    const first = poolObjectStatus({ ...FACTS, unplaced });
    expect(first.conditions[0]?.lastTransitionTime).toBe('2026-03-01T12:00:00Z');
    const object = { ...OBJECT, status: first };
    const later = { ...FACTS, object, now: NOW + 60_000 };
    const other = { code: 'NO_CAPACITY', message: '6.1 GiB free' };
    expect(poolObjectStatus({ ...later, unplaced: other })).toEqual(first);
    const { conditions } = poolObjectStatus(later);
    expect(conditions.map(({ lastTransitionTime }) => lastTransitionTime.slice(11))).toEqual([
      '12:00:00Z',
      '12:00:00Z',
      '12:01:00Z',
      '12:00:00Z',
    ]);
  });
});
