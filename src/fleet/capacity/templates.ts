// SPDX-License-Identifier: Apache-2.0
// Which VM is cloned: by id, by an id per host, or by name; on the machine's own host, or on shared storage.

import type { Template } from '../../placement/index.ts';
import type { RegionView, VmSummary } from '../../ports/hypervisor.ts';
import { isMachineError } from '../context/machine-error.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { SourceSettings } from '../context/settings.ts';

export type TemplateSource = Extract<SourceSettings, { kind: 'template' }>;

/** The region's templates that match the source, with the storage of their disks. Looked up once per pass. */
export function templatesIn(
  context: ReconcileContext,
  view: RegionView,
  source: TemplateSource,
): Promise<readonly Template[]> {
  const key = `${view.region} ${JSON.stringify(source)}`;
  const known = context.templates.get(key) ?? findTemplates(context, view, source);
  context.templates.set(key, known);
  return known;
}

async function findTemplates(
  context: ReconcileContext,
  view: RegionView,
  source: TemplateSource,
): Promise<readonly Template[]> {
  const named = view.vms.filter((vm) => vm.isTemplate && isNamed(vm, source));
  const found = await Promise.all(named.map((vm) => withStorage(context, view.region, vm)));
  return found.flatMap((template) => template ?? []);
}

function isNamed(vm: VmSummary, { id, idByHost, name }: TemplateSource): boolean {
  if (id !== undefined) return vm.vmId === id;
  const ids = Object.keys(idByHost).length > 0;
  return ids ? idByHost[vm.host] === vm.vmId : vm.name === name;
}

async function withStorage(
  context: ReconcileContext,
  region: string,
  { vmId, host }: VmSummary,
): Promise<Template | undefined> {
  try {
    const { bootDisk } = await context
      .hypervisor(region)
      .vmConfig({ vmId, host }, context.readOptions);
    return bootDisk === undefined ? undefined : { vmId, host, storage: bootDisk.storage };
  } catch (error) {
    // A template that cannot be read cannot be cloned now.
    if (isMachineError(error)) return undefined;
    throw error;
  }
}

/** The template to clone for a machine on `host`: on that host, or on storage shared with it. */
export async function templateFor(
  context: ReconcileContext,
  at: { readonly region: string; readonly host: string },
  source: TemplateSource,
): Promise<Template | undefined> {
  const view = context.views.get(at.region);
  if (view === undefined) return undefined;
  const templates = await templatesIn(context, view, source);
  const host = view.hosts.find(({ name }) => name === at.host);
  const isShared = (storage: string) =>
    host?.storages.some(({ name, shared }) => name === storage && shared) === true;
  return (
    templates.find((template) => template.host === at.host) ??
    templates.find((template) => isShared(template.storage))
  );
}
