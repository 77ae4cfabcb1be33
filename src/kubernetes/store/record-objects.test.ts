// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Intent } from '../../model/intent.ts';
import {
  aDrain,
  aMachine,
  aMachineId,
  anIntent,
  aPoolState,
} from '../../ports/fakes/sample-records.ts';
import type { CollectionName } from '../../ports/record-validators.ts';
import { RECORD_KINDS, type RecordParts } from './kinds.ts';
import { objectName, recordKey } from './object-names.ts';
import {
  fromObject,
  INITIAL_STATUS_ANNOTATION,
  type RecordObject,
  toContent,
  toObject,
} from './record-objects.ts';

const ID = aMachineId();
const AT = Date.UTC(2026, 10, 18, 12, 0, 0, 5);

function kindOf(collection: CollectionName) {
  const found = RECORD_KINDS.find(({ parts }) =>
    parts.some((part) => part.collection === collection),
  );
  return found ?? expect.unreachable(`no kind holds ${collection}`);
}

/** The records of an object as the API server returns it, with fields in another order. */
function returned(collection: CollectionName, object: RecordObject) {
  const sorted = JSON.parse(JSON.stringify(object, sortKeys)) as RecordObject;
  return fromObject(kindOf(collection), sorted);
}

function sortKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? 1 : -1)));
}

const CASES: readonly (readonly [string, CollectionName, string, RecordParts])[] = [
  ['a machine', 'machines', ID, { machines: aMachine({ requestedAt: AT, phaseSince: AT + 0.25 }) }],
  [
    'a machine with all parts of its life',
    'machines',
    ID,
    {
      machines: aMachine({
        phase: 'draining',
        phaseTimes: { placed: AT, ready: AT + 1 },
        task: { upid: 'u', kind: 'start', host: 'h', startedAt: AT },
        failure: { code: 'C', message: 'm', at: AT, phase: 'creating' },
        diagnostics: { at: AT, lines: ['a'] },
        missingSince: AT,
        isVmLeft: true,
        vm: { from: { kind: 'image', image: 'noble' }, network: { kind: 'dhcp' } },
        requiredHost: { region: 'lab', host: 'pve1' },
      }),
      drains: aDrain({ undo: { cause: 'changed', message: 'm' } }),
    },
  ],
  ['a drain without its machine', 'drains', ID, { drains: aDrain() }],
  ['a request', 'intents', 'intent-1', { intents: anIntent({ requestedAt: AT }) }],
  ['a done request', 'intents', 'intent-1', { intents: { ...anIntent(), state: 'done' } }],
  [
    'a pool',
    'pools',
    'role:worker',
    {
      pools: aPoolState({
        pool: 'role:worker',
        scaling: {
          at: AT,
          unneededSince: { [ID]: AT },
          trials: { [ID]: ['u'] },
          streak: ['s'],
          replacement: { at: AT, replaced: [ID], added: [] },
          failedRemovals: { 'uid-of-a-replica-set': { count: 2, until: AT } },
        },
      }),
    },
  ],
];

describe('an object of records', () => {
  it.each(CASES)('of %s has the same records when it is read', (...[, collection, key, parts]) => {
    const object = toObject(kindOf(collection), key, parts);
    expect(returned(collection, object)).toEqual({ ok: true, value: parts });
    expect(recordKey(object.metadata)).toBe(key);
  });

  it('has dates that people can read, and its name instead of an id', () => {
    const object = toObject(kindOf('machines'), ID, { machines: aMachine({ requestedAt: AT }) });
    expect(object.metadata).toMatchObject({
      name: ID,
      labels: { 'pvescaler.dev/pool': 'workers' },
    });
    expect(object.spec).toMatchObject({ requestedAt: '2026-11-18T12:00:00.005Z' });
    expect(object.spec).not.toHaveProperty('id');
  });

  it('has its first status in an annotation, until it has a status', () => {
    const kind = kindOf('machines');
    const machine = aMachine();
    const object = toObject(kind, ID, { machines: machine });
    expect(object.status).toBeUndefined();
    expect(object.metadata.annotations).toHaveProperty([INITIAL_STATUS_ANNOTATION]);
    const next = { ...machine, phase: 'placed' as const };
    const content = toContent(kind, { key: ID, parts: { machines: next }, spec: object.spec });
    const changed = { ...object, ...content };
    expect(fromObject(kind, changed)).toEqual({ ok: true, value: { machines: next } });
  });

  it('needs no annotation for a request that is open', () => {
    const { metadata } = toObject(kindOf('intents'), 'i', { intents: anIntent({ id: 'i' }) });
    expect(metadata.annotations).toEqual({});
  });

  it('keeps its spec: what changed counts from the status', () => {
    const kind = kindOf('intents');
    const { spec } = toObject(kind, 'intent-1', { intents: anIntent({ requestedAt: AT }) });
    const changed: Intent = { ...anIntent({ requestedAt: 7 }), state: 'done' };
    const content = toContent(kind, { key: 'intent-1', parts: { intents: changed }, spec });
    expect(content?.spec).toBe(spec);
    expect(content?.status).toEqual({ state: 'done', requestedAt: '1970-01-01T00:00:00.007Z' });
    const object = { metadata: { name: 'intent-1' }, ...content };
    expect(fromObject(kind, object)).toEqual({ ok: true, value: { intents: changed } });
  });

  it('cannot lose a field of its spec', () => {
    const kind = kindOf('machines');
    const { spec } = toObject(kind, ID, { machines: aMachine({ intent: 'i' }) });
    expect(toContent(kind, { key: ID, parts: { machines: aMachine() }, spec })).toBeUndefined();
  });

  it('keeps fields of a newer version', () => {
    const machine = { ...aMachine(), later: { at: 'x' } };
    const object = toObject(kindOf('machines'), ID, { machines: machine });
    expect(returned('machines', object)).toEqual({ ok: true, value: { machines: machine } });
  });

  it.each([
    ['a wrong phase', { phase: 'sleeping' }, 'machines: value.phase is not one of'],
    ['a wrong time', { phase: 'ready', phaseSince: 'now' }, 'machines: value.phaseSince'],
    ['a wrong drain', { drain: { state: 'x' } }, 'drains: value.nodeName'],
  ])('with %s is refused with the reason', (_, status, problem) => {
    const object = toObject(kindOf('machines'), ID, { machines: aMachine() });
    const refused = fromObject(kindOf('machines'), { ...object, status });
    expect(refused).toMatchObject({ ok: false, problem: expect.stringContaining(problem) });
  });

  it('with an initial status that is not JSON is refused', () => {
    const metadata = { name: ID, annotations: { [INITIAL_STATUS_ANNOTATION]: '{' } };
    expect(fromObject(kindOf('machines'), { metadata })).toMatchObject({ ok: false });
  });
});

describe('the name of an object', () => {
  it.each(['workers', ID, 'a.b-c'])('is the key where it can be: %s', (key) => {
    expect(objectName(key)).toBe(key);
  });

  it.each([
    ['role:worker', /^role-worker-x[0-9a-f]{16}$/],
    ['lab/10.0.0.1', /^lab-10\.0\.0\.1-x/],
    ['lab/2001:db8::5', /^lab-2001-db8-5-x/],
    ['\u{1F600}', /^record-x/],
    ['-.A', /^a-x/],
    ['x'.repeat(300), /^x{200}-x/],
  ])('has a hash for %s', (key, pattern) => {
    expect(objectName(key)).toMatch(pattern);
    expect(objectName(key)).toMatch(
      /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
    );
  });

  it('differs for a key that looks like another name', () => {
    const name = objectName('role:worker');
    expect(objectName(name)).not.toBe(name);
  });
});
