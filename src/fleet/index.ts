// SPDX-License-Identifier: Apache-2.0
// The engine: every machine, one lifecycle, one driver. Owns what happens between an intent and a VM, in both
// directions, and what is left when something in between dies. Must not know Proxmox, SQLite, the config file or a
// face. Start reading at round.ts, then lifecycle/advance.ts.
export type { OutlookReading, OutlookReport, Room } from './capacity/outlook.ts';
export { ReportedOutlook } from './capacity/reported-outlook.ts';
export { type Desk, type DeskOptions, openDesk } from './desk.ts';
export type { DriveEvents, DriveTerms } from './drive.ts';
export { createFleet, type Fleet } from './fleet.ts';
export { Throne } from './leadership.ts';
export type { Member } from './members.ts';
export type { Picture } from './mirror/mirror.ts';
export type { JoinSettings, TokenSettings } from './nodes/join-settings.ts';
export type { FleetOptions } from './options.ts';
export type { Orphan } from './orphans/list.ts';
export type { PoolTerms } from './pool-limits.ts';
export type { Asked, Why } from './requests.ts';
export type { RoundReport } from './round.ts';
export type {
  FleetSettings,
  ImageSettings,
  InterfaceSettings,
  NetworkSettings,
  PoolSettings,
  RegionSettings,
  SeedSettings,
  SourceSettings,
} from './settings.ts';
export type { FleetStatus, PoolStatus } from './status.ts';
