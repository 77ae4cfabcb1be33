// SPDX-License-Identifier: Apache-2.0
// Which VM is cloned: by id, by an id per host, or by name; on the machine's own host, or on shared storage. A
// template's configuration is read once, and again when its summary changes or after some minutes.

import { findTemplates } from '../../model/role.ts';
import type { Template } from '../../placement/index.ts';
import type { RegionView, VmSummary } from '../../ports/hypervisor.ts';
import type { HostJobs } from '../context/host-jobs.ts';
import { isMachineError } from '../context/machine-error.ts';
import { DONE } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings, SourceSettings } from '../context/settings.ts';
import { waitingVms } from '../context/vm-settings.ts';
import { vmFingerprint } from './taken-addresses.ts';

export type TemplateSource = Extract<SourceSettings, { kind: 'template' }>;

const MAX_AGE_MS = 5 * 60_000;

/** Starts the reads of the templates of all pools; returns the keys of the jobs. */
export function readTemplates(
  context: ReconcileContext,
  jobs: HostJobs,
  vms: readonly PoolSettings[] = waitingVms(context),
): readonly string[] {
  return [...Object.values(context.settings.pools), ...vms].flatMap(({ source, regions }) => {
    if (source.kind !== 'template') return [];
    return regions.flatMap((region) => startReads(context, jobs, { region, source }));
  });
}

function startReads(
  context: ReconcileContext,
  jobs: HostJobs,
  { region, source }: { readonly region: string; readonly source: TemplateSource },
): readonly string[] {
  const view = context.views.get(region);
  const unknown = view === undefined ? [] : templateVms(context, view, source);
  return unknown
    .filter((vm) => !isKnown(context, region, vm))
    .map((vm) => {
      const key = `template VM ${vm.vmId} in region ${region}`;
      jobs.start(key, { region, host: vm.host }, async (newest) => {
        await learnStorage(newest, region, vm);
        return DONE;
      });
      return key;
    });
}

/** The templates of the region that match the source and have been read, with the storage of their disks. */
export function templatesIn(
  context: ReconcileContext,
  view: RegionView,
  source: TemplateSource,
): readonly Template[] {
  return templateVms(context, view, source).flatMap(({ vmId, host }) => {
    const storage = context.state.templates.get(`${view.region}/${vmId}`)?.storage;
    return storage === undefined ? [] : [{ vmId, host, storage }];
  });
}

/** A template that matches the source, while none of those has been read. */
export function findUnreadTemplate(
  context: ReconcileContext,
  view: RegionView,
  source: TemplateSource,
): VmSummary | undefined {
  if (templatesIn(context, view, source).length > 0) return undefined;
  return templateVms(context, view, source).find(
    ({ vmId }) => !context.state.templates.has(`${view.region}/${vmId}`),
  );
}

function templateVms(
  { settings }: Pick<ReconcileContext, 'settings'>,
  { vms }: RegionView,
  source: TemplateSource,
): readonly VmSummary[] {
  return findTemplates(vms, source, settings.clusterName);
}

function isKnown({ state, clock }: ReconcileContext, region: string, vm: VmSummary): boolean {
  const known = state.templates.get(`${region}/${vm.vmId}`);
  return known?.fingerprint === vmFingerprint(vm) && clock.monotonic() - known.readAt <= MAX_AGE_MS;
}

/** A template that cannot be read cannot be cloned now; it is read again in the next pass. */
async function learnStorage(
  context: ReconcileContext,
  region: string,
  vm: VmSummary,
): Promise<void> {
  const key = `${region}/${vm.vmId}`;
  try {
    const { bootDisk } = await context.hypervisor(region).vmConfig(vm, context.readOptions);
    const fingerprint = vmFingerprint(vm);
    const storage = bootDisk?.storage;
    const readAt = context.clock.monotonic();
    context.state.templates.set(key, { fingerprint, readAt, storage });
  } catch (error) {
    if (!isMachineError(error)) throw error;
    context.state.templates.delete(key);
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
  // Another template may be on a host that does not answer.
  const known = chooseTemplate(templatesIn(context, view, source), view, at.host);
  if (known !== undefined) return known;
  const unread = templateVms(context, view, source).filter(
    (vm) => !isKnown(context, at.region, vm),
  );
  await Promise.all(unread.map((vm) => learnStorage(context, at.region, vm)));
  return chooseTemplate(templatesIn(context, view, source), view, at.host);
}

function chooseTemplate(
  templates: readonly Template[],
  view: RegionView,
  hostName: string,
): Template | undefined {
  const host = view.hosts.find(({ name }) => name === hostName);
  const isShared = (storage: string) =>
    host?.storages.some(({ name, shared }) => name === storage && shared) === true;
  return (
    templates.find((template) => template.host === hostName) ??
    templates.find((template) => isShared(template.storage))
  );
}
