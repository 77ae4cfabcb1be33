// SPDX-License-Identifier: Apache-2.0
// Template nodes, ready to be sent; made anew when a joined node taught something.
import type { FleetView } from '../../fleet/index.ts';
import type { LearnedAllocatable } from '../../model/pool.ts';
import type { ExternalGrpcSettings, GroupSettings } from '../settings.ts';
import { sizeKey } from './allocatable.ts';
import { encodeNode } from './encode-node.ts';
import { templateNode } from './template-node.ts';

interface Kept {
  readonly learned: LearnedAllocatable | undefined;
  readonly bytes: Uint8Array;
}

export class Templates {
  readonly #view: Pick<FleetView, 'pools'>;
  readonly #gpuLabel: string;
  readonly #kept = new Map<string, Kept>();

  constructor(view: Pick<FleetView, 'pools'>, { gpu }: ExternalGrpcSettings) {
    this.#view = view;
    this.#gpuLabel = gpu.label;
  }

  bytes(group: GroupSettings): Uint8Array {
    const learned = this.#view.pools.get(group.name)?.allocatable[sizeKey(group)];
    const known = this.#kept.get(group.name);
    if (known !== undefined && known.learned === learned) return known.bytes;
    const place = { region: onlyOf(group.regions), gpuLabel: this.#gpuLabel };
    const bytes = encodeNode(templateNode(group, place, learned));
    this.#kept.set(group.name, { learned, bytes });
    return bytes;
  }
}

/** Which of several a machine will stand in is decided when it is made. */
function onlyOf(regions: readonly string[]): string | undefined {
  return regions.length === 1 ? regions[0] : undefined;
}
