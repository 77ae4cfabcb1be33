// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  aDrain,
  aJournalEntry,
  aMachine,
  aMachineId,
  anIntent,
  aPoolState,
} from './fakes/sample-records.ts';
import {
  decodeRecord,
  encodeRecord,
  JOURNAL_VALIDATOR,
  RECORD_VALIDATORS,
} from './record-validators.ts';

describe('record validators', () => {
  it('accept valid records', () => {
    expect(RECORD_VALIDATORS.intents(anIntent(), 'value')).toBeUndefined();
    expect(RECORD_VALIDATORS.machines(aMachine(), 'value')).toBeUndefined();
    expect(RECORD_VALIDATORS.drains(aDrain(), 'value')).toBeUndefined();
    expect(RECORD_VALIDATORS.pools(aPoolState(), 'value')).toBeUndefined();
    expect(JOURNAL_VALIDATOR(aJournalEntry(), 'value')).toBeUndefined();
  });

  it('accept a task of an earlier version, which has neither kind nor host', () => {
    const task = { upid: 'UPID:pve-1:0001', startedAt: 5 };
    const { machines } = RECORD_VALIDATORS;
    expect(machines({ ...aMachine(), task }, 'value')).toBeUndefined();
    const unknown = { ...aMachine(), task: { ...task, kind: 'qmcreate' } };
    expect(machines(unknown, 'value')).toContain('value.task.kind is not one of create');
  });

  it.each([
    [null, 'value is not an object'],
    [[], 'value is not an object'],
    [{ ...aMachine(), id: 'X' }, 'value.id is not a machine id'],
    [{ ...aMachine(), id: aMachineId(10).toUpperCase() }, 'value.id is not a machine id'],
    [{ ...aMachine(), pool: 1 }, 'value.pool is not a string'],
    [
      { ...aMachine(), phase: 'toString' },
      expect.stringContaining('value.phase is not one of requested, '),
    ],
    [{ ...aMachine(), requestedAt: '1' }, 'value.requestedAt is not a number'],
    [{ ...aMachine(), attempts: 1.5 }, 'value.attempts is not an integer'],
    [{ ...aMachine(), size: { cpu: 1 } }, 'value.size.memoryBytes is not a number'],
    [{ ...aMachine(), placement: null }, 'value.placement is not an object'],
    [{ ...aMachine(), nodeName: 5 }, 'value.nodeName is not a string'],
  ])('report the invalid field of a machine (case %#)', (value, problem) => {
    expect(RECORD_VALIDATORS.machines(value, 'value')).toEqual(problem);
  });

  it('report the path of an invalid value inside arrays, dictionaries and unions', () => {
    const { intents, drains, pools } = RECORD_VALIDATORS;
    expect(intents(3, 'value')).toBe('value is not an object');
    expect(intents({ ...anIntent(), kind: 'buy' }, 'value')).toBe(
      'value.kind is not one of create, resume, delete, cancel, drain, cancel-drain, adopt, forget, destroy',
    );
    expect(intents({ ...anIntent(), machines: [aMachineId(), 'x'] }, 'value')).toBe(
      'value.machines[1] is not a machine id',
    );
    expect(intents({ ...anIntent(), machines: 'x' }, 'value')).toBe(
      'value.machines is not an array',
    );
    expect(drains({ ...aDrain(), blockedBy: [{ object: 'a' }] }, 'value')).toBe(
      'value.blockedBy[0].reason is not a string',
    );
    expect(drains({ ...aDrain(), isCordonedByDrain: 0 }, 'value')).toBe(
      'value.isCordonedByDrain is not a boolean',
    );
    expect(pools({ ...aPoolState(), allocatable: { s: {} } }, 'value')).toBe(
      'value.allocatable.s.cpuMilli is not a number',
    );
    expect(pools({ ...aPoolState(), allocatable: [] }, 'value')).toBe(
      'value.allocatable is not an object',
    );
    expect(JOURNAL_VALIDATOR({ ...aJournalEntry(), numbers: { n: true } }, 'value')).toBe(
      'value.numbers.n is not a number',
    );
  });
});

describe('record codec', () => {
  it('keeps unknown fields of a newer version', () => {
    const json = JSON.stringify({ ...aPoolState(), fromTheFuture: { x: 1 } });
    const decoded = decodeRecord(RECORD_VALIDATORS.pools, json);
    if (!decoded.ok) expect.unreachable(decoded.problem);
    else
      expect(JSON.parse(encodeRecord(RECORD_VALIDATORS.pools, decoded.value, 'x'))).toEqual(
        JSON.parse(json),
      );
  });

  it('reports why stored text cannot be decoded', () => {
    expect(decodeRecord(RECORD_VALIDATORS.pools, '{')).toEqual({
      ok: false,
      problem: 'is not JSON',
    });
    expect(decodeRecord(RECORD_VALIDATORS.pools, '{}')).toEqual({
      ok: false,
      problem: 'value.pool is not a string',
    });
  });
});
