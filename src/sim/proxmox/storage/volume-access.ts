// SPDX-License-Identifier: Apache-2.0
// Permission checks for the use of a volume.
import { ROOT_USER } from '../access/permissions.ts';
import { serverError } from '../api-error.ts';
import type { Core } from '../core.ts';
import {
  type ParsedVolumeName,
  parseVolumeName,
  requireStorage,
  splitVolumeId,
} from './volumes.ts';

export interface VolumeAccess {
  readonly authUser: string;
  readonly volumeId: string;
  /** The VM that uses the volume. */
  readonly vmId?: number | undefined;
  /** The required content type. */
  readonly content?: string;
}

function requireOwned(
  core: Core,
  use: VolumeAccess,
  owner: { readonly storage: string; readonly kind: ParsedVolumeName },
): void {
  const { storage, kind } = owner;
  const { vmId } = kind;
  if (vmId !== undefined && vmId === use.vmId) return;
  if (vmId !== undefined && kind.content === 'backup') {
    core.access.require(use.authUser, {
      path: `/storage/${storage}`,
      privileges: ['Datastore.AllocateSpace'],
    });
    return core.access.require(use.authUser, { path: `/vms/${vmId}`, privileges: ['VM.Backup'] });
  }
  if (vmId !== undefined && (kind.content === 'images' || kind.content === 'rootdir')) {
    core.access.require(use.authUser, {
      path: `/storage/${storage}`,
      privileges: ['Datastore.Audit'],
    });
    return core.access.require(use.authUser, {
      path: `/vms/${vmId}`,
      privileges: ['VM.Config.Disk'],
    });
  }
  throw serverError(`missing privileges to access ${use.volumeId}`);
}

export function requireVolumeAccess(core: Core, use: VolumeAccess): void {
  const id = splitVolumeId(use.volumeId);
  if (id === undefined) {
    if (use.authUser !== ROOT_USER) {
      // Perl adds the position to a message without a newline.
      const line = core.state.version === '8.4' ? 569 : 651;
      throw serverError(
        `Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line ${line}.`,
      );
    }
    return;
  }
  const kind = parseVolumeName(requireStorage(core.state, id.storage), id.name);
  if (use.content !== undefined && kind.content !== use.content) {
    throw serverError(
      `unable to use volume ${use.volumeId} - content type needs to be '${use.content}'`,
    );
  }
  const path = `/storage/${id.storage}`;
  if (core.access.allows(use.authUser, { path, privileges: ['Datastore.Allocate'] })) return;
  if (kind.content === 'iso' || kind.content === 'vztmpl' || kind.content === 'import') {
    return core.access.require(use.authUser, {
      path,
      privileges: ['Datastore.AllocateSpace', 'Datastore.Audit'],
      any: true,
    });
  }
  requireOwned(core, use, { storage: id.storage, kind });
}
