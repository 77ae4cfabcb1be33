// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  aDrain,
  aJournalEntry,
  aMachine,
  aMachineId,
  anAddressLease,
  anIntent,
  aPoolState,
} from './fakes/sample-records.ts';
import { decodeRecord, encodeRecord } from './record-codec.ts';
import { JOURNAL_SHAPE, RECORD_SHAPES } from './record-shapes.ts';

describe('record shapes', () => {
  it('accept the samples', () => {
    expect(RECORD_SHAPES.intents(anIntent(), 'value')).toBeUndefined();
    expect(RECORD_SHAPES.machines(aMachine(), 'value')).toBeUndefined();
    expect(RECORD_SHAPES.addresses(anAddressLease(), 'value')).toBeUndefined();
    expect(RECORD_SHAPES.drains(aDrain(), 'value')).toBeUndefined();
    expect(RECORD_SHAPES.pools(aPoolState(), 'value')).toBeUndefined();
    expect(JOURNAL_SHAPE(aJournalEntry(), 'value')).toBeUndefined();
  });

  it('accept a task of an earlier version, which has neither kind nor host', () => {
    const task = { upid: 'UPID:pve-1:0001', startedAt: 5 };
    expect(RECORD_SHAPES.machines({ ...aMachine(), task }, 'value')).toBeUndefined();
    const unknown = { ...aMachine(), task: { ...task, kind: 'qmcreate' } };
    expect(RECORD_SHAPES.machines(unknown, 'value')).toContain('value.task.kind is none of create');
  });

  it.each([
    [null, 'value is not an object'],
    [[], 'value is not an object'],
    [{ ...aMachine(), id: 'X' }, 'value.id is not a machine id'],
    [{ ...aMachine(), id: aMachineId(10).toUpperCase() }, 'value.id is not a machine id'],
    [{ ...aMachine(), pool: 1 }, 'value.pool is not a text'],
    [
      { ...aMachine(), phase: 'toString' },
      expect.stringContaining('value.phase is none of requested, '),
    ],
    [{ ...aMachine(), requestedAt: '1' }, 'value.requestedAt is not a number'],
    [{ ...aMachine(), attempts: 1.5 }, 'value.attempts is not a whole number'],
    [{ ...aMachine(), size: { cpu: 1 } }, 'value.size.memoryBytes is not a number'],
    [{ ...aMachine(), placement: null }, 'value.placement is not an object'],
    [{ ...aMachine(), nodeName: 5 }, 'value.nodeName is not a text'],
  ])('name what is wrong with a machine (%#)', (value, problem) => {
    expect(RECORD_SHAPES.machines(value, 'value')).toEqual(problem);
  });

  it('name what is wrong inside lists, tables and unions', () => {
    const { intents, drains, pools } = RECORD_SHAPES;
    expect(intents(3, 'value')).toBe('value is not an object');
    expect(intents({ ...anIntent(), kind: 'buy' }, 'value')).toBe(
      'value.kind is none of create, delete, cancel',
    );
    expect(intents({ ...anIntent(), machines: [aMachineId(), 'x'] }, 'value')).toBe(
      'value.machines[1] is not a machine id',
    );
    expect(intents({ ...anIntent(), machines: 'x' }, 'value')).toBe('value.machines is not a list');
    expect(drains({ ...aDrain(), blockedBy: [{ pod: 'a' }] }, 'value')).toBe(
      'value.blockedBy[0].reason is not a text',
    );
    expect(drains({ ...aDrain(), wasCordonedBefore: 0 }, 'value')).toBe(
      'value.wasCordonedBefore is neither true nor false',
    );
    expect(pools({ ...aPoolState(), allocatable: { s: {} } }, 'value')).toBe(
      'value.allocatable.s.cpuMilli is not a number',
    );
    expect(pools({ ...aPoolState(), allocatable: [] }, 'value')).toBe(
      'value.allocatable is not an object',
    );
    expect(JOURNAL_SHAPE({ ...aJournalEntry(), numbers: { n: true } }, 'value')).toBe(
      'value.numbers.n is not a number',
    );
  });
});

describe('record codec', () => {
  it('keeps fields that this version does not know', () => {
    const json = JSON.stringify({ ...aPoolState(), fromTheFuture: { x: 1 } });
    const decoded = decodeRecord(RECORD_SHAPES.pools, json);
    if (!decoded.ok) expect.unreachable(decoded.problem);
    else
      expect(JSON.parse(encodeRecord(RECORD_SHAPES.pools, decoded.value, 'x'))).toEqual(
        JSON.parse(json),
      );
  });

  it('tells what is wrong with a text', () => {
    expect(decodeRecord(RECORD_SHAPES.pools, '{')).toEqual({ ok: false, problem: 'is not JSON' });
    expect(decodeRecord(RECORD_SHAPES.pools, '{}')).toEqual({
      ok: false,
      problem: 'value.pool is not a text',
    });
  });
});
