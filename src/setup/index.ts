// SPDX-License-Identifier: Apache-2.0
// Opens a fleet from a config: the daemon and every command that reads or drives the fleet start here.
export type {
  ConnectedCluster,
  ConnectOptions,
  KubernetesStoreOptions,
  OpenedStore,
  SetupAdapters,
  SetupContext,
  Telemetry,
} from './context.ts';
export { findChecksum } from './image-checksums.ts';
export { findMissingAccess } from './missing-access.ts';
export {
  needsCluster,
  type OpenFleet,
  type OpenOptions,
  openFleet,
  shouldConnectKubernetes,
} from './open-fleet.ts';
export { describeStore, openLocalStore, openRecords } from './open-store.ts';
