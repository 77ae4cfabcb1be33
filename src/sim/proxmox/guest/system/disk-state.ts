// SPDX-License-Identifier: Apache-2.0
import type { GuestUser } from '../guest-types.ts';
import type { ImageProfile } from '../image-profiles.ts';
import type { FileTreeState } from './files.ts';
import type { NicPlan } from './network.ts';

/** The state that survives a power-off; JSON-serializable. */
export interface DiskState {
  readonly version: 1;
  readonly tree: FileTreeState;
  readonly users: readonly GuestUser[];
  readonly packages: readonly string[];
  readonly enabledUnits: readonly string[];
  /** The instance that cloud-init last configured this disk for. */
  readonly instanceId: string | null;
  readonly network: readonly NicPlan[];
  readonly boots: number;
}

const ROOT_USER: GuestUser = {
  name: 'root',
  authorizedKeys: [],
  groups: ['root'],
  sudo: [],
  shell: '/bin/bash',
  lockPassword: true,
};

/** Returns a fresh disk for any value that is not a state of this version. */
export function restoreDiskState(value: unknown, profile: ImageProfile): DiskState {
  return isDiskState(value) ? value : freshDisk(profile);
}

function freshDisk(profile: ImageProfile): DiskState {
  return {
    version: 1,
    tree: { files: {}, directories: [] },
    users: [ROOT_USER],
    packages: profile.packages,
    enabledUnits: [],
    instanceId: null,
    network: [],
    boots: 0,
  };
}

function isDiskState(value: unknown): value is DiskState {
  if (typeof value !== 'object' || value === null || !('version' in value)) return false;
  return value.version === 1 && 'tree' in value && 'users' in value && 'network' in value;
}
