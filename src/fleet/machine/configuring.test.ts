// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { HypervisorMethod } from '../../ports/fakes/memory-hypervisor.ts';
import { aPool, someSettings, templateSource } from '../testing/settings.ts';
import { aTestFleet, reachPhase, replaceVm, runPasses } from '../testing/test-fleet.ts';

describe('a configuration change of a VM whose id a person took after the ownership check', () => {
  const cloned = someSettings([aPool({ source: templateSource() })]);
  it.each<HypervisorMethod>(['applySpec', 'growBootDisk', 'attachSeed', 'setDescription'])(
    'is refused: %s',
    async (changing) => {
      const testFleet = aTestFleet(cloned);
      const { hypervisor } = testFleet;
      let options: ReadonlyMap<string, string> | undefined;
      hypervisor.onCall = ({ method, vmId = 0, host = '' }) => {
        if (method !== changing || options !== undefined) return;
        ({ options } = replaceVm(testFleet, { vmId, host }));
      };
      await reachPhase(testFleet, 'configuring');
      await runPasses(testFleet, 30);
      expect(Object.fromEntries(options ?? [])).toEqual({
        name: 'a-persons',
        memory: '512',
        scsi0: 'local-lvm:vm-1250-disk-0,size=1024M',
      });
    },
  );

  it('is made with the digest of the configuration that was verified, not of a later read', async () => {
    const testFleet = aTestFleet(cloned);
    const { hypervisor } = testFleet;
    const template = hypervisor.state.vms.get(9_001);
    template?.options.set('protection', '1');
    let options: ReadonlyMap<string, string> | undefined;
    let changes = 0;
    hypervisor.onCall = ({ method, vmId = 0, host = '' }) => {
      if (method !== 'applySpec') return;
      changes += 1;
      // The first change removed the protection; a person takes the id before the second.
      if (changes === 2) ({ options } = replaceVm(testFleet, { vmId, host }));
    };
    await reachPhase(testFleet, 'configuring');
    await runPasses(testFleet, 30);
    expect(options?.get('memory')).toBe('512');
  });
});
