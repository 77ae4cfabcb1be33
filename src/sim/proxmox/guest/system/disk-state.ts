// SPDX-License-Identifier: Apache-2.0
import type { GuestUser } from '../guest-types.ts';
import type { ImageProfile } from '../image-profiles.ts';
import type { FilesState } from './files.ts';
import type { NicPlan } from './network.ts';

/** What survives a power-off; plain JSON. */
export interface DiskState {
  readonly version: 1;
  readonly tree: FilesState;
  readonly users: readonly GuestUser[];
  readonly packages: readonly string[];
  readonly enabledUnits: readonly string[];
  /** The instance that cloud-init last configured this disk for. */
  readonly instanceId: string | null;
  readonly network: readonly NicPlan[];
  readonly boots: number;
}

const ROOT: GuestUser = {
  name: 'root',
  authorizedKeys: [],
  groups: ['root'],
  sudo: [],
  shell: '/bin/bash',
  lockPassword: true,
};

/** Anything that is not a state of this version is a disk fresh from its image. */
export function diskStateFrom(value: unknown, profile: ImageProfile): DiskState {
  return isDiskState(value) ? value : freshDisk(profile);
}

function freshDisk(profile: ImageProfile): DiskState {
  return {
    version: 1,
    tree: { files: {}, directories: [] },
    users: [ROOT],
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
