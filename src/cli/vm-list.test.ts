// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { OpenFleet } from '../setup/index.ts';
import { findVm } from './vm-list.ts';

const OURS = {
  id: '10500000-0000-4000-8000-000000000001',
  pool: 'role:web',
  phase: 'ready',
  placement: { region: 'a', vmId: 700, name: 'web-1' },
};
const OTHER = {
  id: 'b0000000-0000-4000-8000-000000000002',
  pool: 'role:web',
  phase: 'ready',
  placement: { region: 'b', vmId: 700, name: 'web-2' },
};
const GONE = { ...OTHER, id: 'c', phase: 'gone', placement: { region: 'a', vmId: 9, name: 'db' } };

const openOf = (...machines: readonly object[]) =>
  ({ fleet: { status: () => Promise.resolve({ machines }) } }) as unknown as OpenFleet;

describe('findVm', () => {
  it('takes digits for a VM id, not for the beginning of a machine id', async () => {
    expect(await findVm(openOf(OURS), '105')).toBeUndefined();
    expect(await findVm(openOf(OURS), '10500000-')).toBe(OURS);
  });

  it('takes no VM of another region', async () => {
    const open = openOf(OURS, OTHER);
    expect(await findVm(open, '700', { region: 'b' })).toBe(OTHER);
    expect(await findVm(openOf(OURS), '700', { region: 'b' })).toBeUndefined();
    await expect(findVm(open, '700')).rejects.toThrow('several regions have a VM 700');
  });

  it('takes only the whole name of a VM that exists when it must be exact', async () => {
    const open = openOf(OURS, GONE);
    expect(await findVm(open, 'web')).toBe(OURS);
    expect(await findVm(open, 'web', { isExact: true })).toBeUndefined();
    expect(await findVm(open, 'db', { isExact: true })).toBeUndefined();
    expect(await findVm(open, 'web-1', { isExact: true })).toBe(OURS);
  });
});
