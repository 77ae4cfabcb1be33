// SPDX-License-Identifier: Apache-2.0
import { joins } from '../fleet-settings.ts';
import type { OpenFleet } from '../open-fleet.ts';

/** What cannot be done without access to Kubernetes, in sentences. */
export function missingAccess({
  cluster,
  config,
}: Pick<OpenFleet, 'cluster' | 'config'>): readonly string[] {
  if (cluster !== undefined) return [];
  return config.pools
    .filter(joins)
    .map(
      ({ name }) => `pool ${name} joins its machines to a cluster, and there is no access to one`,
    );
}
