// SPDX-License-Identifier: Apache-2.0
// Proxmox hides what its credentials may not see: a storage is missing from the view, a host shows no CPUs. Whether a
// privilege is the cause is asked only for what no host of the region shows.
import type { Host } from '../../model/host.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { HostJobs } from '../context/host-jobs.ts';
import { isMachineError } from '../context/machine-error.ts';
import { DONE } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

/** A granted privilege shows in the next view; this is for a storage that does not exist either. */
const REREAD_MS = 10 * 60_000;

interface Needed {
  readonly privilege: string;
  readonly path: string;
}

/** Starts the reads; returns the keys of the jobs. */
export function readPrivileges(context: ReconcileContext, jobs: HostJobs): readonly string[] {
  return [...context.views.values()].flatMap((view) => {
    const [asked] = view.hosts.filter(({ online }) => online);
    if (asked === undefined) return [];
    return unseenIn(context, view)
      .filter((needed) => isDue(context, view.region, needed))
      .map((needed) => {
        const key = `privilege ${keyOf(view.region, needed)}`;
        jobs.start(key, { region: view.region, host: asked.name }, async (newest) => {
          await learn(newest, view.region, needed);
          return DONE;
        });
        return key;
      });
  });
}

/** What is not in the view, with the privilege that would show it. */
function unseenIn(context: ReconcileContext, { region, hosts }: RegionView): readonly Needed[] {
  const online = hosts.filter((host) => host.online);
  const seen = new Set(online.flatMap(({ storages }) => storages.map(({ name }) => name)));
  const hidden = wantedStorages(context, region).filter((name) => !seen.has(name));
  return [
    ...hidden.map((name) => ({ privilege: 'Datastore.Audit', path: `/storage/${name}` })),
    ...online
      .filter(({ cpus }) => cpus === 0)
      .map(({ name }) => ({ privilege: 'Sys.Audit', path: `/nodes/${name}` })),
  ];
}

function wantedStorages(context: ReconcileContext, region: string): readonly string[] {
  const { images, seeds, disks } = context.region(region).storage;
  const pools = Object.values(context.settings.pools).filter((one) => one.regions.includes(region));
  const wanted = pools.flatMap(({ source, seed, disk }) => [
    ...(source.kind === 'image' ? [images] : []),
    ...(seed === undefined ? [] : [seeds]),
    ...(disk.storage === undefined ? disks : [disk.storage]),
  ]);
  return [...new Set(wanted)];
}

function isDue({ state, clock }: ReconcileContext, region: string, needed: Needed): boolean {
  const known = state.privileges.get(keyOf(region, needed));
  return known === undefined || clock.monotonic() - known.readAt > REREAD_MS;
}

async function learn(context: ReconcileContext, region: string, needed: Needed): Promise<void> {
  const { state, clock } = context;
  const { privilege, path } = needed;
  const granted = await context
    .hypervisor(region)
    .permissions(path, context.readOptions)
    .catch((error: unknown) => {
      if (!isMachineError(error)) throw error;
      return undefined;
    });
  const isMissing = granted !== undefined && !granted.includes(privilege);
  state.privileges.set(keyOf(region, needed), { readAt: clock.monotonic(), isMissing });
}

/** Those that are known to hide something, as in `Datastore.Audit on /storage/local`. */
export function missingPrivilegesOf(
  { state }: ReconcileContext,
  region: string,
): NonNullable<Host['missingPrivileges']> {
  const prefix = `${region}: `;
  return [...state.privileges]
    .filter(([key, { isMissing }]) => isMissing && key.startsWith(prefix))
    .map(([key]) => key.slice(prefix.length));
}

function keyOf(region: string, { privilege, path }: Needed): string {
  return `${region}: ${privilege} on ${path}`;
}
