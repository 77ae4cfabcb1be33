// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type MachineId, parseMachineId, shortMachineId } from './machine.ts';
import { MAX_POOL_NAME_LENGTH, parsePoolName, poolTag } from './names.ts';
import { placeholderProviderId, readProviderId, vmProviderId } from './provider-id.ts';

const id = '3c9f4a52-7d1b-4c5e-9a6f-0b2d4e6f8a10' as MachineId;

describe('provider ids', () => {
  it.each([
    [vmProviderId('lab', 1250), { kind: 'vm', region: 'lab', vmId: 1250 }],
    [placeholderProviderId(id), { kind: 'placeholder', machine: id }],
    [`proxmox://${id}`, { kind: 'smbios', machine: id }],
    ['k3s://worker-1', { kind: 'node-name', nodeName: 'worker-1' }],
    ['rke2://worker-1', { kind: 'node-name', nodeName: 'worker-1' }],
    ['aws:///eu-1/i-0abc', { kind: 'foreign' }],
    ['proxmox://lab/99', { kind: 'foreign' }],
    ['proxmox://lab/1250/x', { kind: 'foreign' }],
    ['pvescaler://machine/12', { kind: 'foreign' }],
    [`pvescaler://${id}`, { kind: 'foreign' }],
    ['', { kind: 'foreign' }],
  ])('are recognized: %s', (text, expected) => {
    expect(readProviderId(text)).toEqual(expected);
  });

  it('never make the reader throw', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(readProviderId(text)).toHaveProperty('kind');
      }),
    );
  });
});

describe('machine ids', () => {
  it('are read in upper case and returned in lower case', () => {
    expect(parseMachineId(id.toUpperCase())).toEqual({ ok: true, value: id });
    expect(parseMachineId('3c9f4a527d1b4c5e9a6f0b2d4e6f8a10').ok).toBe(false);
    expect(shortMachineId(id)).toBe('3c9f4a52');
  });
});

describe('pool names', () => {
  it.each(['small', 'a', '0', 'gpu-a100', 'a--b', 'x'.repeat(MAX_POOL_NAME_LENGTH)])(
    'are accepted: %s',
    (name) => {
      expect(parsePoolName(name)).toEqual({ ok: true, value: name });
    },
  );

  it.each([
    '',
    'Small',
    'a_b',
    '-a',
    'a-',
    'a.b',
    'ä',
    'a b',
    'x'.repeat(MAX_POOL_NAME_LENGTH + 1),
  ])('are refused: "%s"', (name) => {
    expect(parsePoolName(name).ok).toBe(false);
  });

  it('leave enough characters for the suffix of a machine name in a host name', () => {
    expect(MAX_POOL_NAME_LENGTH + '-'.length + shortMachineId(id).length).toBeLessThanOrEqual(63);
  });

  it('become a tag that Proxmox does not change', () => {
    expect(poolTag('small')).toMatch(/^[a-z0-9_][a-z0-9_+.-]*$/);
  });
});
