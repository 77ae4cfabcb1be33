// SPDX-License-Identifier: Apache-2.0
// The account in Proxmox from its creation to its removal: the pveum commands of the guides on the simulator, which cannot
// delete roles.
import { expect, it } from 'vitest';
import { readSection } from '../docs/documents.ts';
import { splitScript } from '../docs/shell.ts';
import { simulatedRegion, threeHostCluster } from '../proxmox/simulated-region.ts';
import { Pveum } from './pveum.ts';

const readPveum = (at: string) =>
  splitScript(readSection(`docs/guides/${at}`)).filter(
    ([program, kind, verb]) => program === 'pveum' && `${kind} ${verb}` !== 'role delete',
  );

it('pveum creates the account, replaces its token, and removes the user', async () => {
  const { sim, settled } = simulatedRegion({
    cluster: { ...threeHostCluster(), users: [{ id: 'root@pam', password: 'simulated' }], acl: [] },
  });
  const pveum = new Pveum(sim);
  const run = async (commands: ReturnType<typeof readPveum>) => {
    for (const words of commands) await settled(pveum.run(words));
  };
  const names = async (path: string, key: string) =>
    ((await settled(pveum.read(path))) as Record<string, string>[]).map((one) => one[key]);

  await run(readPveum('real-proxmox.md#1. An account in Proxmox'));
  expect(await names('/access/users/pvescaler@pve/token', 'tokenid')).toEqual(['server']);
  await run(readPveum('day-2.md#Rotate tokens and certificates'));
  expect(await names('/access/users/pvescaler@pve/token', 'tokenid')).toEqual(['server2']);
  await run(readPveum('day-2.md#Remove everything'));
  expect(await names('/access/users', 'userid')).toEqual(['root@pam']);
});
