// SPDX-License-Identifier: Apache-2.0
// Hand-made VMs: what `vm create` uses unless an option says otherwise.
import * as z from 'zod';
import { key, section } from './key.ts';
import { dnsName } from './name-leaves.ts';
import { interfaceSchema } from './network.ts';
import { diskSchema, placementSchemaWith } from './pool-machine.ts';
import { fromSchema } from './source-choice.ts';
import { vmOptionsSchema } from './vm-options.ts';

export const vmsSchema = section({
  from: key(fromSchema, 'Where a new VM comes from, unless `--from` names something else.', {
    defaultText: 'the template or image, when there is exactly one',
  }),
  namePrefix: key(dnsName().prefault('k8s'), 'Names are `<namePrefix>-<role>-<number>`.', {
    replaces: { 'vm-plan': '--role' },
  }),
  interfaces: key(
    z.array(interfaceSchema).min(1).max(32).prefault([{}]),
    'Network cards, starting with `net0`. A static address is assigned to the first card.',
  ),
  disk: key(diskSchema, 'Disk options.'),
  vmOptions: key(vmOptionsSchema, 'Additional Proxmox VM options, as for a pool.'),
  onboot: key(z.boolean().prefault(true), 'Start VMs when their host boots.'),
  placement: key(placementSchemaWith('least-vms'), 'How the host of a new VM is chosen.'),
});
