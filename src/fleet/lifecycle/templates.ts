// SPDX-License-Identifier: Apache-2.0
// Which VM is cloned: by id, by an id per host, or by name; on the machine's own host, or on shared storage.

import type { Template } from '../../placement/index.ts';
import type { RegionView, VmSummary } from '../../ports/hypervisor.ts';
import type { SourceSettings } from '../settings.ts';
import { isLocalTrouble } from '../trouble.ts';
import type { Turn } from '../turn.ts';
import { bootDiskSlot } from './clone-options.ts';

export type TemplateSource = Extract<SourceSettings, { kind: 'template' }>;

/** The templates of a region that the source names, and where their disks are; looked up once a round. */
export function templatesIn(
  turn: Turn,
  view: RegionView,
  source: TemplateSource,
): Promise<readonly Template[]> {
  const key = `${view.region} ${JSON.stringify(source)}`;
  const known = turn.templates.get(key) ?? findTemplates(turn, view, source);
  turn.templates.set(key, known);
  return known;
}

async function findTemplates(
  turn: Turn,
  view: RegionView,
  source: TemplateSource,
): Promise<readonly Template[]> {
  const named = view.vms.filter((vm) => vm.isTemplate && isNamed(vm, source));
  const found = await Promise.all(named.map((vm) => withStorage(turn, view.region, vm)));
  return found.flatMap((template) => template ?? []);
}

function isNamed(vm: VmSummary, { id, idByHost, name }: TemplateSource): boolean {
  if (id !== undefined) return vm.vmId === id;
  const ids = Object.keys(idByHost).length > 0;
  return ids ? idByHost[vm.host] === vm.vmId : vm.name === name;
}

async function withStorage(
  turn: Turn,
  region: string,
  { vmId, host }: VmSummary,
): Promise<Template | undefined> {
  try {
    const config = await turn.hypervisor(region).vmConfig({ vmId, host }, turn.reading);
    const [storage = ''] = (config.options[bootDiskSlot(config) ?? ''] ?? '').split(':');
    return storage === '' ? undefined : { vmId, host, storage };
  } catch (error) {
    // What cannot be read now is no template now.
    if (isLocalTrouble(error)) return undefined;
    throw error;
  }
}

/** The one to clone for a machine on `host`: there, or wherever its shared disk can be reached from. */
export async function templateFor(
  turn: Turn,
  at: { readonly region: string; readonly host: string },
  source: TemplateSource,
): Promise<Template | undefined> {
  const view = turn.views.get(at.region);
  if (view === undefined) return undefined;
  const templates = await templatesIn(turn, view, source);
  const host = view.hosts.find(({ name }) => name === at.host);
  const isShared = (storage: string) =>
    host?.storages.some(({ name, shared }) => name === storage && shared) === true;
  return (
    templates.find((template) => template.host === at.host) ??
    templates.find((template) => isShared(template.storage))
  );
}
