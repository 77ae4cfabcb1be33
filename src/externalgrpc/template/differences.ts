// SPDX-License-Identifier: Apache-2.0
import type { FleetView } from '../../fleet/index.ts';
import type { ExternalGrpcSettings } from '../settings.ts';
import { differenceOf, sizeKey } from './allocatable.ts';

interface Parts {
  readonly fleet: { readonly view: Pick<FleetView, 'pools'> };
  readonly settings: ExternalGrpcSettings;
}

/** Where joined nodes offer something else than the config promises, one sentence per pool. */
export function differences({ fleet, settings }: Parts): readonly string[] {
  return settings.groups.flatMap((group) => {
    const learned = fleet.view.pools.get(group.name)?.allocatable[sizeKey(group)];
    return (learned === undefined ? undefined : differenceOf(group, learned)) ?? [];
  });
}
