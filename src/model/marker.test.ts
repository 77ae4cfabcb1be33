// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MachineId } from './machine.ts';
import {
  foreignMarkerReason,
  formatMarker,
  isIgnored,
  type Marker,
  readMarker,
  verifyOwnership,
  withMarker,
  withoutMarker,
} from './marker.ts';

const CLUSTER = '6f1c2f0e-94c4-4f0b-8f6e-1d2c3b4a5968';
const marker: Marker = {
  cluster: CLUSTER,
  pool: 'small',
  machine: '3c9f4a52-7d1b-4c5e-9a6f-0b2d4e6f8a10' as MachineId,
  vmId: 1250,
  createdAtSeconds: 1_767_225_600,
  addresses: ['10.10.10.11/24', '2001:db8::5/64'],
};
const line =
  'pvescaler/v1 cluster=6f1c2f0e-94c4-4f0b-8f6e-1d2c3b4a5968 pool=small machine=3c9f4a52-7d1b-4c5e-9a6f-0b2d4e6f8a10 ' +
  'vmid=1250 created=1767225600 address=10.10.10.11/24 address=2001:db8::5/64';

const aMarker = fc.record({
  cluster: fc.uuid(),
  pool: fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$/),
  machine: fc.uuid().map((id) => id as MachineId),
  vmId: fc.integer({ min: 100, max: 999_999_999 }),
  createdAtSeconds: fc.integer({ min: 0, max: 4_000_000_000 }),
  addresses: fc.array(
    fc.ipV4().map((address) => `${address}/24`),
    { maxLength: 3 },
  ),
});

describe('marker', () => {
  it('is formatted as the documented line', () => {
    expect(formatMarker(marker)).toBe(line);
    expect(readMarker(line)).toEqual({ kind: 'marked', marker });
  });

  it('is read whatever text surrounds it', () => {
    fc.assert(
      fc.property(aMarker, fc.string({ unit: 'grapheme' }), fc.string(), (some, before, after) => {
        fc.pre(!/pvescaler\/v/.test(before + after));
        const description = `${before}\n${formatMarker(some)}\n${after}`;
        expect(readMarker(description)).toEqual({ kind: 'marked', marker: some });
      }),
    );
  });

  it('is replaced by the line of an ignored VM, and back', () => {
    const ignored = withoutMarker(`my notes\n${line}\n${line}\nmore notes`);
    expect(ignored).toBe('my notes\nmore notes\npvescaler/ignored');
    expect(readMarker(ignored).kind).toBe('none');
    expect(isIgnored(ignored)).toBe(true);
    expect(withoutMarker(ignored)).toBe(ignored);
    expect(withMarker(ignored, marker)).toBe(`my notes\nmore notes\n${line}`);
    expect(isIgnored(`${ignored}\n${line}`)).toBe(false);
    expect(isIgnored(undefined)).toBe(false);
  });

  it('is foreign when it names another cluster, damaged or not, or has another version', () => {
    expect(foreignMarkerReason(`notes\n${line}`, CLUSTER)).toBeUndefined();
    expect(foreignMarkerReason('notes', CLUSTER)).toBeUndefined();
    expect(foreignMarkerReason('pvescaler/v1 pool', CLUSTER)).toBeUndefined();
    expect(foreignMarkerReason(line, 'other')).toBe(`it belongs to cluster ${CLUSTER}`);
    expect(foreignMarkerReason('pvescaler/v1 pool cluster=b', CLUSTER)).toMatch(/cluster b/);
    expect(foreignMarkerReason('pvescaler/v2 x', CLUSTER)).toMatch(/version v2/);
  });

  it('replaces its own line and keeps all other text', () => {
    const before = 'my notes\n\nnothing to see';
    const once = withMarker(before, marker);
    expect(once).toBe(`${before}\n${line}`);
    const deleting = { ...marker, deletingSinceSeconds: 1_767_225_700 };
    const twice = withMarker(`${once}\nmore notes`, deleting);
    expect(twice).toBe(`${before}\n${line} deleting=1767225700\nmore notes`);
    expect(readMarker(twice)).toEqual({ kind: 'marked', marker: deleting });
    expect(withMarker('', marker)).toBe(line);
    const ready = { ...deleting, readySinceSeconds: 1_767_225_650 };
    const thrice = withMarker(twice, ready);
    expect(thrice).toBe(`${before}\n${line} ready=1767225650 deleting=1767225700\nmore notes`);
    expect(readMarker(thrice)).toEqual({ kind: 'marked', marker: ready });
  });

  it('keeps fields that a newer version wrote', () => {
    const reading = readMarker(`${line} warm=1`);
    expect(reading).toMatchObject({ kind: 'marked', marker: { unknown: [['warm', '1']] } });
    if (reading.kind === 'marked') expect(formatMarker(reading.marker)).toBe(`${line} warm=1`);
  });

  it.each([
    ['no marker', 'just a VM', 'none'],
    ['nothing', undefined, 'none'],
    ['the marker prefix within a sentence', 'made by pvescaler/v1 once', 'none'],
    ['a newer version', line.replace('v1', 'v2'), 'damaged'],
    ['two markers', `${line}\n${line}`, 'damaged'],
    ['a missing machine', line.replace(/machine=\S+ /, ''), 'damaged'],
    ['a machine id that is not a UUID', line.replace(/machine=\S+/, 'machine=abc'), 'damaged'],
    ['a VM id with a sign', line.replace('vmid=1250', 'vmid=-1250'), 'damaged'],
    ['the same field twice', `${line} pool=other`, 'damaged'],
    ['a pool name in upper case', line.replace('pool=small', 'pool=Small'), 'damaged'],
    ['a field without a value', `${line} oops`, 'damaged'],
    ['ready without a time', `${line} ready=yes`, 'damaged'],
    ['deleting without a time', `${line} deleting=now`, 'damaged'],
  ])('reads %s', (_case, description, kind) => {
    expect(readMarker(description).kind).toBe(kind);
  });

  it.each([
    [
      'a newer version',
      line.replace('v1', 'v2'),
      'marker version v2 is not supported by this version',
    ],
    ['two markers', `${line}\n${line}`, 'the description has more than one marker'],
    ['no fields', 'pvescaler/v1', 'marker has no valid cluster'],
    ['no cluster', line.replace(/cluster=\S+ /, ''), 'marker has no valid cluster'],
    ['no pool', line.replace('pool=small ', ''), "marker's pool is empty"],
    [
      'an invalid machine',
      line.replace(/machine=\S+/, 'machine=abc'),
      "marker's machine is not a UUID",
    ],
    ['no VM id', line.replace('vmid=1250 ', ''), 'marker has no valid vmid'],
    ['text after the VM id', line.replace('1250', '1250x'), 'marker has no valid vmid'],
    ['no creation time', line.replace(/created=\d+ /, ''), 'marker has no valid creation time'],
    ['an invalid ready', `${line} ready=yes`, 'marker has an invalid ready'],
    ['an invalid deleting', `${line} deleting=now`, 'marker has an invalid deleting'],
    ['the pool twice', `${line} pool=other`, 'marker contains pool twice'],
  ])('names the problem of a marker with %s', (_case, description, problem) => {
    expect(readMarker(description)).toEqual({
      kind: 'damaged',
      problem: expect.stringContaining(problem),
    });
  });

  it('may have several spaces and tabs between its fields and behind them', () => {
    expect(readMarker(`${line.replaceAll(' ', ' \t ')}  `)).toEqual({ kind: 'marked', marker });
  });

  it('has no time of readiness or deletion unless the line has one', () => {
    const reading = readMarker(line);
    expect(reading.kind === 'marked' && Object.keys(reading.marker)).toEqual(Object.keys(marker));
  });

  it('replaces several lines, also the first, by one', () => {
    const old = line.replace('small', 'old');
    expect(withMarker(`${old}\nnotes\n${old}`, marker)).toBe(`${line}\nnotes`);
  });

  it('never throws, whatever the description', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `pvescaler/v1 ${text}`),
        ),
        (text) => {
          expect(['none', 'marked', 'damaged']).toContain(readMarker(text).kind);
        },
      ),
    );
  });
});

const OWNER = { cluster: CLUSTER, region: 'home' };

describe('verifyOwnership', () => {
  const vm = {
    vmId: 1250,
    description: line,
    smbiosUuid: marker.machine.toUpperCase(),
    configured: true,
  };

  it('accepts a VM whose cluster, VM id and SMBIOS UUID match', () => {
    expect(verifyOwnership(vm, OWNER)).toEqual({ owned: true, marker });
  });

  it.each([
    ['a VM without a marker', { ...vm, description: 'web server' }, 'it has no marker'],
    ['a copy of a managed VM', { ...vm, vmId: 1251 }, 'it is a copy of VM 1250'],
    [
      'a VM of another cluster',
      { ...vm, description: line.replace(CLUSTER, 'another') },
      'it belongs to cluster another',
    ],
    [
      'a VM of another region with the same id',
      { ...vm, description: `${line} region=garage` },
      'it belongs to region garage',
    ],
    [
      'a VM that reuses an id and kept an old description',
      { ...vm, smbiosUuid: '00000000-0000-4000-8000-000000000000' },
      `its SMBIOS UUID 00000000-0000-4000-8000-000000000000 is not machine ${marker.machine}`,
    ],
    [
      'a configured VM without its SMBIOS UUID',
      { ...vm, smbiosUuid: undefined },
      `its SMBIOS UUID (none) is not machine ${marker.machine}`,
    ],
    [
      'a VM with a damaged marker',
      { ...vm, description: `${line} oops` },
      "its marker is damaged: marker field 'oops' must have the form key=value",
    ],
  ])('rejects %s', (_case, observed, reason) => {
    expect(verifyOwnership(observed, OWNER)).toEqual({ owned: false, reason });
  });

  it('accepts a marker with the region of the VM', () => {
    const { owned } = verifyOwnership({ ...vm, description: `${line} region=home` }, OWNER);
    expect(owned).toBe(true);
  });

  it('does not check the SMBIOS UUID of a clone that is not configured yet', () => {
    expect(verifyOwnership({ ...vm, smbiosUuid: undefined, configured: false }, OWNER).owned).toBe(
      true,
    );
  });
});
