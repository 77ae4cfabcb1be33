// SPDX-License-Identifier: Apache-2.0
// The engine: machines, their lifecycle, and the driver that reconciles them. See README.md. Start reading at
// driver/reconcile-pass.ts, then machine/reconcile-machine.ts.
export type {
  FleetCapacity,
  ForecastReader,
  ForecastReport,
  Headroom,
  PlacementRefusal,
  RegionCapacity,
} from './capacity/capacity-forecast.ts';
export { ReportedForecast } from './capacity/reported-forecast.ts';
export { DriverRegistry } from './context/driver-lease.ts';
export type { JoinSettings, TokenSettings } from './context/join-settings.ts';
export type { CheckDrain, DrainCheck, DrainingNode, FleetOptions } from './context/options.ts';
export type { RemovedPool } from './context/removed-pools.ts';
export type {
  FleetSettings,
  ImageSettings,
  PoolSettings,
  RegionSettings,
  SeedSettings,
  SourceSettings,
  TemplateSettings,
  VmSettings,
} from './context/settings.ts';
export { MinimumDelay } from './driver/minimum-delay.ts';
export type { PassReport } from './driver/reconcile-pass.ts';
export type { DriverEvents, DriverOptions, PassOutcome } from './driver/run-driver.ts';
export { createFleet, type Fleet } from './fleet.ts';
export type { FleetView } from './records/record-cache.ts';
export type { VmDecision, VmDecisionRequest } from './recovery/decide-vm.ts';
export type { Orphan } from './recovery/list-orphans.ts';
export type { PlannedVm } from './recovery/plan-vms.ts';
export type {
  Accepted,
  DrainRequest,
  DrainSettings,
  RequestReason,
  ScaleReason,
  VmsRequest,
} from './requests/fleet-client.ts';
export {
  createFleetClient,
  type FleetClient,
  type FleetClientOptions,
} from './requests/fleet-client.ts';
export type { FleetStatus, PoolStatus } from './requests/status.ts';
