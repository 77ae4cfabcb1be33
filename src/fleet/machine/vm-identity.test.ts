// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { aRegion, CLUSTER } from '../testing/settings.ts';
import { seedFileName, seedOwner, tagsOf } from './vm-identity.ts';

describe('tagsOf', () => {
  const region = aRegion({ tags: ['pvescaler', 'Prod'] });

  it("has the region's tags, the pool's and the cluster's name, in lower case", () => {
    const tags = tagsOf('workers', region, { clusterName: 'Home' });
    expect(tags).toEqual(['ca-group-workers', 'home', 'prod', 'pvescaler']);
  });

  it('has each tag once', () => {
    const tags = tagsOf('workers', region, { clusterName: 'prod' });
    expect(tags).toEqual(['ca-group-workers', 'prod', 'pvescaler']);
  });
});

describe('seedOwner', () => {
  it('returns the machine of a seed of this cluster, and undefined for other files', () => {
    const name = seedFileName(CLUSTER, aMachineId(7));
    expect(seedOwner(name, CLUSTER)).toBe(aMachineId(7));
    expect(seedOwner(name, 'another')).toBeUndefined();
    expect(seedOwner('debian.iso', CLUSTER)).toBeUndefined();
  });
});
