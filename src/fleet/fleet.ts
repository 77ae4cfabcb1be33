// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../model/lease.ts';
import type { PoolPause, PoolScaling, PoolState } from '../model/pool.ts';
import { Bug, LostLeadership } from '../ports/errors.ts';
import type { RegionView } from '../ports/hypervisor.ts';
import type { WriteOptions } from '../ports/store.ts';
import {
  CapacityForecast,
  type FleetCapacity,
  type ForecastReader,
} from './capacity/capacity-forecast.ts';
import { isBefore } from './context/driver-lease.ts';
import type { FleetOptions } from './context/options.ts';
import type { FleetSettings } from './context/settings.ts';
import { CallsInProgress } from './driver/calls-in-progress.ts';
import { followCapacity } from './driver/follow-capacity.ts';
import type { PassReport } from './driver/reconcile-pass.ts';
import { Reconciler } from './driver/reconciler.ts';
import { type DriverOptions, runDriver } from './driver/run-driver.ts';
import { RecordCache } from './records/record-cache.ts';
import {
  planVmDecision,
  requestVmDecision,
  type VmDecision,
  type VmDecisionRequest,
} from './recovery/decide-vm.ts';
import { listOrphans, type Orphan } from './recovery/list-orphans.ts';
import { type PlannedVm, planVms, type VmPlanRequest } from './recovery/plan-vms.ts';
import { readCapacity } from './recovery/read-capacity.ts';
import { createFleetClient, type FleetClient } from './requests/fleet-client.ts';
import { readMemberHealth } from './requests/member-health.ts';
import { type FleetStatus, readStatus, type StatusOptions } from './requests/status.ts';

export interface Fleet extends FleetClient {
  /**
   * Replaces the settings as a whole. Requests are judged by them at once; a pass in progress and the machines being
   * reconciled end with those they began with. Regions, holder and cluster must be the same.
   */
  replaceSettings(next: FleetSettings): void;
  /** What the last passes of this process read, or `followCapacity`. */
  readonly forecast: ForecastReader & Pick<CapacityForecast, 'report' | 'onChange'>;
  /** What the hosts had left in the last pass of this process; undefined when it does not drive. */
  capacity(): FleetCapacity | undefined;
  /** The newest views of Proxmox in this process; empty when it neither drives nor follows. */
  regionViews(): readonly RegionView[];
  /** Reads what the hosts have left, whichever process drives. Throws an error if no region can be read. */
  readCapacity(): Promise<ForecastReader & { readonly capacity: FleetCapacity | undefined }>;
  /** The lease that this process drives with; undefined when another process drives. */
  driverLease(): Lease | undefined;
  /** Pauses the requests of the autoscaler for a pool. Throws LostLeadership when another process drives. */
  pausePool(pool: string, pause: PoolPause): Promise<void>;
  /** Stores what the autoscaler remembers of a pool. Throws LostLeadership when another process drives. */
  rememberScaling(pool: string, scaling: PoolScaling, options?: Deferral): Promise<void>;
  status(options?: StatusOptions): Promise<FleetStatus>;
  /** Lists what has lost its counterpart, from Proxmox and the records; changes nothing. */
  orphans(): Promise<readonly Orphan[]>;
  /** Reads the VM and judges a person's decision about it; throws when it would be refused. Changes nothing. */
  planVmDecision(request: VmDecisionRequest): Promise<VmDecision>;
  /** Where these VMs would be created now; throws what would make one fail. Changes nothing. */
  planVms(request: VmPlanRequest): Promise<readonly PlannedVm[]>;
  /** Requests the decision; the driver carries it out. Returns the id of the intent. */
  requestVmDecision(decision: VmDecision): Promise<string>;
  /** One pass, and every machine that is due, under a lease that the caller holds. */
  reconcileOnce(lease: Lease, options?: { readonly signal?: AbortSignal }): Promise<PassReport>;
  /**
   * Until the signal: while another process drives with the same records, `forecast` is what this process reads of
   * Proxmox itself.
   */
  followCapacity(signal: AbortSignal): Promise<void>;
  /** Is the driver whenever no other process is, until the signal. */
  runDriver(options: DriverOptions): Promise<void>;
}

export function createFleet(options: FleetOptions): Fleet {
  const { store, clock } = options;
  let { settings } = options;
  /** For work that begins now. */
  const current = (): FleetOptions => ({ ...options, settings });
  const cache = new RecordCache(store, (pool) => settings.pools[pool]?.memoryOverheadBytes ?? 0);
  const forecast = new CapacityForecast();
  const calls = new CallsInProgress(clock);
  const hypervisors = new Map(
    Array.from(options.hypervisors, ([region, hypervisor]) => [
      region,
      calls.observe(hypervisor, `region ${region}`),
    ]),
  );
  const engine = { ...options, settings: () => settings, hypervisors, calls, cache, forecast };
  const changePool = poolChanger(cache, forecast);
  const errors: unknown[] = [];
  const reconciler = new Reconciler(engine, { onError: (error) => errors.push(error) });
  return {
    ...createFleetClient(
      {
        ...options,
        pools: () => settings.pools,
        readHealth: (signal) => readMemberHealth(options, signal),
      },
      cache,
    ),
    replaceSettings: (next) => {
      requireSameIdentity(settings, next);
      settings = next;
      cache.usage.updateReservations();
    },
    forecast,
    capacity: () => forecast.capacity,
    regionViews: () => forecast.views,
    readCapacity: () => readCapacity(current(), cache),
    driverLease: () => forecast.driverLease,
    pausePool: (pool, pause) => changePool(pool, { pause }),
    rememberScaling: (pool, scaling, deferral) => changePool(pool, { scaling }, deferral),
    status: (statusOptions) => readStatus(current(), cache, statusOptions),
    orphans: () => listOrphans(current(), cache),
    planVmDecision: (request) => planVmDecision(current(), cache, request),
    planVms: (request) => planVms(current(), cache, request),
    requestVmDecision: (decision) => requestVmDecision(current(), cache, decision),
    reconcileOnce: async (lease, { signal } = {}) => {
      // A wall clock that is set back must not prolong the lease.
      const monotonic = clock.monotonic() + lease.expiresAt - clock.now();
      const mayAct = () => isBefore({ wall: lease.expiresAt, monotonic }, clock);
      errors.length = 0;
      const report = await reconciler.pass({ lease, mayAct, signal });
      await reconciler.drain();
      if (errors.length > 0) throw errors[0];
      return { ...report, inProgress: reconciler.countInProgress() };
    },
    followCapacity: (signal) => followCapacity({ current, cache, forecast }, signal),
    runDriver: (driver) => runDriver({ ...engine, minimumDelay: driver.minimumDelay }, driver),
  };
}

/** Connections, markers on VMs and leases were made with these. */
function requireSameIdentity(before: FleetSettings, after: FleetSettings): void {
  const identityOf = ({ cluster, clusterName, holder, namespace, regions }: FleetSettings) =>
    JSON.stringify([cluster, clusterName, holder, namespace, Object.keys(regions).toSorted()]);
  if (identityOf(before) !== identityOf(after))
    throw new Bug('BUG', 'settings of another cluster, process or list of regions');
}

type Deferral = Pick<WriteOptions, 'deferMs'>;

/** Changes what the front ends of this process remember of a pool. */
function poolChanger(cache: RecordCache, forecast: CapacityForecast) {
  return (
    pool: string,
    change: Pick<PoolState, 'pause' | 'scaling'>,
    options: Deferral = {},
  ): Promise<void> =>
    cache.runPoolChange(async () => {
      const { driverLease: fence } = forecast;
      if (fence === undefined) {
        const message = `pool ${pool} is not changed: another process drives`;
        throw new LostLeadership('LEASE_LOST', message);
      }
      const state = cache.pools.get(pool) ?? { pool, allocatable: {} };
      await cache.pools.put(pool, { ...state, ...change }, { ...options, fence });
    });
}
