// SPDX-License-Identifier: Apache-2.0
// What a person reads when the token lacks one privilege.
import { expect, it } from 'vitest';
import { aLab } from '../support/lab.ts';

/** Those of the guide, for a pool with an image. */
const PRIVILEGES = [
  'VM.Allocate',
  'VM.Audit',
  'VM.Config.CDROM',
  'VM.Config.CPU',
  'VM.Config.Cloudinit',
  'VM.Config.Disk',
  'VM.Config.HWType',
  'VM.Config.Memory',
  'VM.Config.Network',
  'VM.Config.Options',
  'VM.PowerMgmt',
  'VM.GuestAgent.Audit',
  'Datastore.Allocate',
  'Datastore.AllocateSpace',
  'Datastore.AllocateTemplate',
  'Datastore.Audit',
  'SDN.Use',
  'Sys.Audit',
  'Sys.AccessNetwork',
];

it('a machine is created and removed with the privileges of the guide', async () => {
  const { run } = await aLab({ privileges: PRIVILEGES });
  expect(run('pool', 'scale', 'workers', '--to', '1')).toMatchObject({ exitCode: 0 });
  expect(run('pool', 'scale', 'workers', '--to', '0')).toMatchObject({ exitCode: 0 });
});

it.each([
  [
    'Datastore.AllocateTemplate',
    'Permission check failed (/storage/local, Datastore.AllocateTemplate)',
  ],
  ['VM.Allocate', 'the credentials lack VM.Allocate on /vms/1250'],
  ['Sys.AccessNetwork', 'the credentials lack Sys.AccessNetwork on /nodes/pve1'],
  ['Sys.Audit', 'the Proxmox credentials lack Sys.Audit on /nodes/pve1'],
  ['Datastore.Audit', 'the Proxmox credentials lack Datastore.Audit on /storage/seeds'],
])('pool scale without %s names it and its path', async (missing, cause) => {
  const { run } = await aLab({ privileges: PRIVILEGES.filter((one) => one !== missing) });
  const scale = (timeout: string) =>
    run('pool', 'scale', 'workers', '--to', '1', '--timeout', timeout);
  let result = scale('6s');
  // On a loaded machine the command may need longer to reach the refused call.
  for (const timeout of ['30s', '120s']) if (!result.err.includes(cause)) result = scale(timeout);
  expect(result.exitCode).not.toBe(0);
  expect(result.err).toContain(cause);
});
