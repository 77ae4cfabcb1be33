// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { CLUSTER } from '../testing/settings.ts';
import { seedFileName, seedOwner } from './vm-identity.ts';

describe('seedOwner', () => {
  it('returns the machine of a seed of this cluster, and undefined for other files', () => {
    const name = seedFileName(CLUSTER, aMachineId(7));
    expect(seedOwner(name, CLUSTER)).toBe(aMachineId(7));
    expect(seedOwner(name, 'another')).toBeUndefined();
    expect(seedOwner('debian.iso', CLUSTER)).toBeUndefined();
  });
});
