// SPDX-License-Identifier: Apache-2.0
// Who may use a volume.
import { ROOT } from '../access/permissions.ts';
import { failure } from '../api-error.ts';
import type { Core } from '../core.ts';
import { kindOf, splitVolumeId, storageOf, type VolumeKind } from './volumes.ts';

export interface VolumeUse {
  readonly who: string;
  readonly volumeId: string;
  /** The VM on whose behalf it is used. */
  readonly vmId?: number | undefined;
  /** The only content type that will do. */
  readonly content?: string;
}

function requireOwned(
  core: Core,
  use: VolumeUse,
  owner: { readonly storage: string; readonly kind: VolumeKind },
): void {
  const { storage, kind } = owner;
  const { vmId } = kind;
  if (vmId !== undefined && vmId === use.vmId) return;
  if (vmId !== undefined && kind.content === 'backup') {
    core.access.require(use.who, {
      path: `/storage/${storage}`,
      privileges: ['Datastore.AllocateSpace'],
    });
    return core.access.require(use.who, { path: `/vms/${vmId}`, privileges: ['VM.Backup'] });
  }
  if (vmId !== undefined && (kind.content === 'images' || kind.content === 'rootdir')) {
    core.access.require(use.who, { path: `/storage/${storage}`, privileges: ['Datastore.Audit'] });
    return core.access.require(use.who, { path: `/vms/${vmId}`, privileges: ['VM.Config.Disk'] });
  }
  throw failure(`missing privileges to access ${use.volumeId}`);
}

export function requireVolumeAccess(core: Core, use: VolumeUse): void {
  const id = splitVolumeId(use.volumeId);
  if (id === undefined) {
    if (use.who !== ROOT) throw failure('Only root can pass arbitrary filesystem paths.');
    return;
  }
  const kind = kindOf(storageOf(core.world, id.storage), id.name);
  if (use.content !== undefined && kind.content !== use.content) {
    throw failure(
      `unable to use volume ${use.volumeId} - content type needs to be '${use.content}'`,
    );
  }
  const path = `/storage/${id.storage}`;
  if (core.access.allows(use.who, { path, privileges: ['Datastore.Allocate'] })) return;
  if (kind.content === 'iso' || kind.content === 'vztmpl' || kind.content === 'import') {
    return core.access.require(use.who, {
      path,
      privileges: ['Datastore.AllocateSpace', 'Datastore.Audit'],
      any: true,
    });
  }
  requireOwned(core, use, { storage: id.storage, kind });
}
