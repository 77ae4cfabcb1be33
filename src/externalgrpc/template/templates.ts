// SPDX-License-Identifier: Apache-2.0
// Encoded template nodes of the groups, encoded again when the learned allocatable changes.
import type { FleetView } from '../../fleet/index.ts';
import type { LearnedAllocatable } from '../../model/pool.ts';
import { sizeKey, templateNode } from '../../pools/index.ts';
import type { ExternalGrpcSettings, GroupSettings } from '../settings.ts';
import { encodeNode } from './encode-node.ts';

interface EncodedTemplate {
  readonly learned: LearnedAllocatable | undefined;
  readonly bytes: Uint8Array;
}

export class Templates {
  readonly #view: Pick<FleetView, 'pools'>;
  readonly #gpuLabel: string;
  readonly #encoded = new Map<string, EncodedTemplate>();

  constructor(view: Pick<FleetView, 'pools'>, { gpu }: ExternalGrpcSettings) {
    this.#view = view;
    this.#gpuLabel = gpu.label;
  }

  bytes(group: GroupSettings): Uint8Array {
    const learned = this.#view.pools.get(group.name)?.allocatable[sizeKey(group.size)];
    const known = this.#encoded.get(group.name);
    if (known !== undefined && known.learned === learned) return known.bytes;
    const bytes = encodeNode(templateNode(group, { gpuLabel: this.#gpuLabel, learned }));
    this.#encoded.set(group.name, { learned, bytes });
    return bytes;
  }
}
