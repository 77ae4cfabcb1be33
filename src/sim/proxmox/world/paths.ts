// SPDX-License-Identifier: Apache-2.0

/** Storages that every installation has at a place of their own. */
export const SYSTEM_STORAGE_PATHS: Readonly<Record<string, string>> = { local: '/var/lib/vz' };
