// SPDX-License-Identifier: Apache-2.0
// How long simulated work takes, in milliseconds at speed 1. Published so that a test or a demo can say when
// something will be done; the speed factor divides every one of them.

export const SIMULATED_DURATIONS_MS = {
  /** An allocation or a linked clone, inside the storage's lock. */
  allocate: 400,
  free: 300,
  /** Fixed part of each task. */
  createVm: 500,
  importPerGib: 4000,
  fullClonePerGib: 4000,
  linkedClone: 700,
  start: 1500,
  stop: 800,
  destroy: 600,
  uploadPerMib: 5,
  upload: 200,
  downloadPerMib: 10,
  download: 500,
  resize: 600,
  template: 500,
  snapshot: 800,
  migrateOffline: 2000,
  migrateOnlinePerGib: 2000,
  configTask: 200,
  deleteVolume: 300,
} as const;

/** Waits with their own texts when they run out, in milliseconds; divided by the speed, too. */
export const SIMULATED_TIMEOUTS_MS = {
  configLock: 10_000,
  createLock: 5_000,
  cloneLock: 1_000,
  storageLock: 10_000,
  shutdown: 60_000,
  guestAgent: 3_000,
  guestCommand: 5_000,
  unauthorized: 3_000,
  proxy: 30_000,
} as const;

/** The resource manager looks every so often at what is wanted. */
export const HA_POLL_INTERVAL_MS = 10_000;
