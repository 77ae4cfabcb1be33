// SPDX-License-Identifier: Apache-2.0
// What the last rounds saw, for those who ask in between: how old the view of each region is, and for how many more
// machines of each pool there was room. Rounds write it, faces read it; nobody waits for Proxmox here.
import type { RegionView } from '../../ports/hypervisor.ts';

/** How many machines beyond those that have their place would find one. */
export interface Room {
  readonly machines: number;
  /** One sentence, where there is none. */
  readonly reason: string | undefined;
}

export class Outlook {
  readonly #takenAt = new Map<string, number>();
  readonly #vmIds = new Map<string, ReadonlySet<number>>();
  readonly #troubles = new Map<string, string>();
  readonly #rooms = new Map<string, Room>();
  roomsAt = Number.NEGATIVE_INFINITY;

  saw(views: ReadonlyMap<string, RegionView>, stale: Readonly<Record<string, string>>): void {
    for (const [region, { takenAt, vms }] of views) {
      this.#takenAt.set(region, takenAt);
      this.#vmIds.set(region, new Set(vms.map(({ vmId }) => vmId)));
      this.#troubles.delete(region);
    }
    for (const [region, why] of Object.entries(stale)) this.#troubles.set(region, why);
  }

  /** Wall clock of the newest view; undefined before the first. */
  takenAt(region: string): number | undefined {
    return this.#takenAt.get(region);
  }

  /** Why the last try to read it failed. */
  trouble(region: string): string | undefined {
    return this.#troubles.get(region);
  }

  /** Whether the newest view has a VM of that id, anybody's. */
  hasVm(region: string, vmId: number): boolean {
    return this.#vmIds.get(region)?.has(vmId) === true;
  }

  setRoom(pool: string, room: Room): void {
    this.#rooms.set(pool, room);
  }

  /** Undefined while nobody has counted. */
  room(pool: string): Room | undefined {
    return this.#rooms.get(pool);
  }
}
