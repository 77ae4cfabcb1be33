// SPDX-License-Identifier: Apache-2.0
// Free space of storages. A view only estimates it (size minus use, so reserved blocks and quotas count as free); the
// hosts report it exactly, at the cost of one read per host. They are read only while machines wait for a place.

import type { Host, HostStorage } from '../../model/host.ts';
import type { Machine } from '../../model/machine.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { StorageReading } from '../context/driver-state.ts';
import type { HostJobs } from '../context/host-jobs.ts';
import { isMachineError } from '../context/machine-error.ts';
import { DONE } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

import type { FleetSettings } from '../context/settings.ts';
import { settingsOf } from '../context/vm-settings.ts';

import { missingPrivilegesOf } from './missing-privileges.ts';

/** A host is read again after this time while machines wait for a place. */
const REREAD_MS = 30_000;
/** Space changes slowly, and the view shows by how much: a host that is slow to answer keeps its reading this long. */
const MAX_AGE_MS = 5 * 60_000;
const RETRY_MS = 10_000;

/**
 * Starts the reads that waiting machines need; returns the keys of the jobs. A read that an earlier pass started is not
 * returned: a host with a storage that hangs delays one pass, not all of them.
 */
export function readStorages(
  context: ReconcileContext,
  jobs: HostJobs,
  waiting = context.records.index.inPhase('requested'),
): readonly string[] {
  const regions = regionsOf(context.settings, waiting);
  return [...regions].flatMap((name) => {
    const view = context.views.get(name);
    return view === undefined ? [] : startReads(context, jobs, view);
  });
}

/** Machines of one pool have the same regions, and thousands of them may wait. */
function regionsOf(settings: FleetSettings, machines: readonly Machine[]): ReadonlySet<string> {
  const alike = new Map(machines.map((machine) => [machine.vm ?? machine.pool, machine]));
  return new Set([...alike.values()].flatMap((one) => settingsOf(settings, one)?.regions ?? []));
}

function startReads(
  context: ReconcileContext,
  jobs: HostJobs,
  { region, hosts }: RegionView,
): readonly string[] {
  const { storageReads } = context.state;
  const isDue = ({ name }: Host) =>
    (storageReads.get(`${region}/${name}`) ?? 0) <= context.clock.monotonic();
  return hosts
    .filter((host) => host.online && isDue(host))
    .filter((host) => readingOf(context, host, REREAD_MS) === undefined)
    .map((host) => {
      const key = `free space of the storages of host ${host.name} in region ${region}`;
      storageReads.set(`${region}/${host.name}`, Number.POSITIVE_INFINITY);
      jobs.start(key, { region, host: host.name }, async (newest) => {
        await learn(newest, host);
        return DONE;
      });
      return key;
    });
}

/** A host may answer after the pass stopped waiting: the next pass places there, and must not be far away. */
export function isReadingStorages({ state }: ReconcileContext): boolean {
  return [...state.storageReads.values()].includes(Number.POSITIVE_INFINITY);
}

async function learn(context: ReconcileContext, { region, name, storages }: Host): Promise<void> {
  const { state, clock } = context;
  const key = `${region}/${name}`;
  const subject = `storages of ${key}`;
  try {
    const space = await context.hypervisor(region).storageSpace(name, context.readOptions);
    const known = storages.flatMap(({ name: storage, freeBytes: estimatedBytes }) => {
      const availableBytes = space.get(storage);
      return availableBytes === undefined
        ? []
        : [[storage, { availableBytes, estimatedBytes }] as const];
    });
    const reading = { readAt: clock.monotonic(), storages: new Map(known) };
    state.storages.set(key, reading);
    state.storageReads.delete(key);
    state.recorded.delete(subject);
  } catch (error) {
    state.storageReads.set(key, clock.monotonic() + RETRY_MS);
    if (!isMachineError(error)) throw error;
    await context.recordOnce(subject, {
      kind: 'failed',
      subject: { region, host: name },
      reason: error.code,
      message: `host ${name} gets no new machines until the free space of its storages can be read: ${error.message}`,
    });
  }
}

function readingOf(
  { state, clock }: ReconcileContext,
  { region, name }: Host,
  maxAgeMs: number,
): StorageReading | undefined {
  const reading = state.storages.get(`${region}/${name}`);
  const ageMs = clock.monotonic() - (reading?.readAt ?? Number.NEGATIVE_INFINITY);
  return ageMs <= maxAgeMs ? reading : undefined;
}

/** The hosts with the free space that they reported; where they reported none, with the view's estimate. */
export function hostsWithSpace(
  context: ReconcileContext,
  { region, hosts }: RegionView,
): readonly Host[] {
  const missingPrivileges = missingPrivilegesOf(context, region);
  return hosts.map((seen) => {
    const host = missingPrivileges.length === 0 ? seen : { ...seen, missingPrivileges };
    const reading = readingOf(context, host, MAX_AGE_MS);
    if (reading === undefined) return host;
    return { ...host, storages: host.storages.map((storage) => withSpace(storage, reading)) };
  });
}

/** Disks created since the reading show only in the view. */
function withSpace(storage: HostStorage, { storages }: StorageReading): HostStorage {
  const read = storages.get(storage.name);
  if (read === undefined) return storage;
  const usedSince = Math.max(0, read.estimatedBytes - storage.freeBytes);
  const freeBytes = Math.max(0, Math.min(storage.freeBytes, read.availableBytes - usedSince));
  return { ...storage, freeBytes };
}

/** Online hosts without a reading: nothing is placed there, because the estimate may be several times too high. */
export function findUnreadHosts(
  context: ReconcileContext,
  { hosts }: RegionView,
): readonly string[] {
  return hosts
    .filter((host) => host.online && readingOf(context, host, MAX_AGE_MS) === undefined)
    .map(({ name }) => name);
}
