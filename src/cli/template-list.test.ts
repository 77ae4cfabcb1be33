// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { OpenFleet } from '../setup/index.ts';
import { readTemplateVms } from './template-list.ts';

const vm = (vmId: number, more: object) => ({ vmId, host: 'pve1', tags: [], ...more });

describe('readTemplateVms', () => {
  it('counts a VM that is being cloned as one that may need the template', async () => {
    const vms = [
      vm(900, { name: 'base', isTemplate: true, isBeingCreated: false }),
      vm(101, { isTemplate: false, isBeingCreated: true }),
    ];
    const open = {
      config: { cluster: {}, templates: { base: { key: 'base', idByHost: {}, id: 900 } } },
      fleet: { status: () => Promise.resolve({ machines: [] }) },
      hypervisors: new Map([
        [
          'lab',
          {
            view: () => Promise.resolve({ region: 'lab', vms }),
            vmConfig: () => Promise.resolve({ vmId: 101, isBeingCreated: true, lock: 'clone' }),
          },
        ],
      ]),
    } as unknown as OpenFleet;
    expect(await readTemplateVms(open)).toMatchObject([{ linkedClones: 0, unreadVms: 1 }]);
  });
});
