// SPDX-License-Identifier: Apache-2.0
// Where a new VM comes from: an image, a template, or the network.
import * as z from 'zod';
import { form, key } from './key.ts';
import { nonEmptyText } from './name-leaves.ts';

export const fromSchema = z
  .union([
    form(
      z.strictObject({
        image: key(
          nonEmptyText(),
          'Name of an image in `images`, imported into each new VM. Requires Proxmox VE 8.4.',
        ),
      }),
    ),
    form(
      z.strictObject({
        template: key(nonEmptyText(), 'Name of a template in `templates`, cloned for each new VM.'),
        clone: key(
          z.enum(['full', 'linked']).prefault('full'),
          'Full copy of the template disk, or a linked clone that depends on the template.',
          {
            note: 'the VM creation plan used full clones, proxmox-autoscaler linked clones',
          },
        ),
      }),
    ),
    form(
      z.strictObject({
        netboot: key(
          z.strictObject({}),
          'Boot an empty disk from the network. The booted system must join the cluster itself.',
          {
            replaces: { kubenodesmith: 'vmOptions boot' },
          },
        ),
      }),
    ),
  ])
  .optional()
  .meta({ 'x-forms': 'a mapping with one of image, template or netboot' });
