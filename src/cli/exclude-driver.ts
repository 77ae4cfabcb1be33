// SPDX-License-Identifier: Apache-2.0
// Holds the leases of the driver while a command works on all records, so that no process changes them meanwhile.
import { type Lease, RECONCILE_LEASE } from '../model/lease.ts';
import type { Clock } from '../ports/clock.ts';
import type { AcquiredLease, Cluster, ClusterLease } from '../ports/cluster.ts';
import { asPvescalerError, Conflict } from '../ports/errors.ts';
import type { Store } from '../ports/store.ts';
import type { CommandHost } from './context.ts';
import type { OpenState } from './with-store.ts';

const LEASE_MS = 30_000;
const RENEW_MS = 5_000;
const RETRY_MS = 1_000;
/** A Lease of a driver that was killed is free after this time. */
const MAX_LEASE_WAIT_MS = 90_000;
/** A request of a driver that was killed may take effect for this long; the next driver waits for it. */
const UNSETTLED_MS = 36_000;

interface Exclusion {
  readonly store: Store;
  readonly cluster: Cluster | undefined;
  readonly clock: Clock;
  readonly holder: string;
  readonly signal: AbortSignal;
  readonly onWait: (holder: string) => void;
}

/** `work` calls `fence` before each write. Rejects with LEASE_HELD while a driver is active. */
export async function withoutDriver<T>(
  host: CommandHost,
  { store, openCluster }: OpenState,
  work: (fence: () => Promise<Lease>) => Promise<T>,
): Promise<T> {
  const { clock, signal, processName } = host.context;
  const exclusion = {
    store,
    cluster: await openCluster(),
    clock,
    signal,
    holder: `${processName}/state`,
    onWait: (other: string) =>
      host.showStatus(`waiting to see whether the driver ${other} is active`),
  };
  return excludeDriver(exclusion, work);
}

export async function excludeDriver<T>(
  exclusion: Exclusion,
  work: (fence: () => Promise<Lease>) => Promise<T>,
): Promise<T> {
  const clusterLease = await acquireClusterLease(exclusion);
  try {
    return await holdStoreLease(exclusion, clusterLease, work);
  } finally {
    await clusterLease?.release();
  }
}

async function holdStoreLease<T>(
  { store, clock, holder, signal }: Exclusion,
  clusterLease: HeldClusterLease | undefined,
  work: (fence: () => Promise<Lease>) => Promise<T>,
): Promise<T> {
  const request = { name: RECONCILE_LEASE, holder, durationMs: LEASE_MS };
  let lease = await store.leases.acquire(request).catch(refuseIfHeld);
  let renewedAt = clock.monotonic();
  try {
    // The last writes of the driver before may not have arrived yet.
    await store.synchronize({ signal });
    return await work(async () => {
      if (clock.monotonic() - renewedAt < RENEW_MS) return lease;
      lease = await store.leases.renew(lease, LEASE_MS);
      await clusterLease?.renew();
      renewedAt = clock.monotonic();
      return lease;
    });
  } finally {
    await store.leases.release(lease);
  }
}

interface HeldClusterLease {
  renew(): Promise<void>;
  release(): Promise<void>;
}

async function acquireClusterLease(exclusion: Exclusion): Promise<HeldClusterLease | undefined> {
  const { cluster } = exclusion;
  if (cluster === undefined) return undefined;
  const acquired = await waitForClusterLease(cluster, exclusion);
  let lease: ClusterLease = acquired;
  return {
    renew: async () => {
      lease = await cluster.renewLease(lease, LEASE_MS);
    },
    // What the former holder left unsettled is passed on.
    release: () =>
      cluster.releaseLease(lease, { unsettledMs: acquired.unsettledMs ?? UNSETTLED_MS }),
  };
}

/** Only a Lease that stays unchanged for its whole duration is free. */
async function waitForClusterLease(
  cluster: Cluster,
  { clock, holder, signal, onWait }: Exclusion,
): Promise<AcquiredLease> {
  const request = { name: RECONCILE_LEASE, holder, durationMs: LEASE_MS };
  const until = clock.monotonic() + MAX_LEASE_WAIT_MS;
  for (;;) {
    try {
      return await cluster.acquireLease(request, { signal });
    } catch (error) {
      const { code, facts } = asPvescalerError(error);
      if (code !== 'LEASE_HELD') throw error;
      if (clock.monotonic() >= until) return refuseIfHeld(error);
      onWait(String(facts['holder']));
    }
    await clock.sleep(RETRY_MS, { signal });
  }
}

function refuseIfHeld(error: unknown): never {
  const { code, facts } = asPvescalerError(error);
  if (code !== 'LEASE_HELD') throw error;
  const holder = String(facts['holder']);
  throw new Conflict('LEASE_HELD', `a driver is active: ${holder}`, {
    hint: 'Stop pvescaler serve and other running commands first: what they change meanwhile would be lost.',
    facts: { holder },
    cause: error,
  });
}
