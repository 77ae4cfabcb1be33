// SPDX-License-Identifier: Apache-2.0
// The config.yaml of the VM creation plan, and the two files that its scripts read: templates and VMs that
// are created manually over SSH. None of them has pools.

import type { ImportContext } from '../context.ts';
import { SourceSection, type SourceTree } from '../source/tree.ts';
import { mapPlan } from './plan.ts';
import { mapTemplateFile } from './template-file.ts';
import { mapVmFile } from './vm-file.ts';

export type PlanFile = 'plan' | 'template-file' | 'vm-file';

/** Detects which of the three files this is. */
export function detectPlanFile(tree: SourceTree): PlanFile | undefined {
  const root = new SourceSection('', tree);
  if (root.find('vms') !== undefined || root.section('proxmox').find('ssh_url') !== undefined)
    return 'vm-file';
  const keys = root.keys();
  if (keys.includes('vm') || (keys.includes('ssh') && keys.includes('image')))
    return 'template-file';
  const ofPlan = [
    'proxmox_nodes',
    'vm_template',
    'vm_sizes',
    'readiness_check',
    'ssh_private_key_path',
  ];
  return ofPlan.some((key) => keys.includes(key)) ? 'plan' : undefined;
}

export function mapVmPlan(context: ImportContext, tree: SourceTree): void {
  context.writer.setOwn(['mode'], 'standalone', '');
  const root = new SourceSection('', tree);
  const file = detectPlanFile(tree);
  if (file === 'vm-file') mapVmFile(context, root);
  else if (file === 'template-file') mapTemplateFile(context, root);
  else mapPlan(context, root);
}
