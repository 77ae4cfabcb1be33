// SPDX-License-Identifier: Apache-2.0
// Durations of simulated work, in milliseconds at speed 1; the speed divides them. Exported for tests and demos that
// compute when work ends.

export const SIMULATED_DURATIONS_MS = {
  /** An allocation or a linked clone, under the storage's lock. */
  allocate: 400,
  free: 300,
  /** Fixed durations and, for copies, durations per GiB or MiB. */
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

/** Timeouts with their own error messages, in milliseconds at speed 1. */
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

/** Interval at which the HA manager acts on requested states. */
export const HA_POLL_INTERVAL_MS = 10_000;
