// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { SourceSettings } from '../context/settings.ts';
import {
  aPool,
  IMAGE_SOURCE,
  STATIC_NETWORK,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import {
  addressesInUse,
  aTestFleet,
  existingResources,
  machinesIn,
  phasesIn,
  REASON,
  untilAtRest,
} from '../testing/test-fleet.ts';

const SOURCES: readonly (readonly [string, SourceSettings])[] = [
  ['image', IMAGE_SOURCE],
  ['full clone', templateSource('full')],
  ['linked clone', templateSource('linked')],
  ['netboot', { kind: 'netboot' }],
];

function poolFrom(source: SourceSettings) {
  const isNetboot = source.kind === 'netboot';
  return aPool({
    source,
    network: STATIC_NETWORK,
    ...(isNetboot && { seed: undefined }),
  });
}

describe.each(SOURCES)('a machine with source %s', (_name, source) => {
  it('is created, becomes ready, and leaves no VM, seed or address after its deletion', async () => {
    const testFleet = aTestFleet(someSettings([poolFrom(source)]));
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const machines = await machinesIn(testFleet.store);
    expect(machines.map(({ phase }) => phase)).toEqual(['ready', 'ready']);
    expect(existingResources(testFleet.hypervisor).machines.sort()).toEqual(
      machines.map(({ id }) => id).sort(),
    );
    expect(existingResources(testFleet.hypervisor).isos).toEqual([]);
    expect(await addressesInUse(testFleet.store)).toEqual(['10.10.10.11', '10.10.10.12']);
    for (const { placement, id, size } of machines) {
      const vm = testFleet.hypervisor.state.vms.get(placement?.vmId ?? 0);
      expect(vm?.options.get('smbios1')).toBe(`uuid=${id}`);
      expect(vm?.options.get('cores')).toBe(String(size.cpu));
      expect(vm?.options.get('tags')).toContain('ca-group-workers');
      expect(vm?.options.get('scsi0')).toContain('size=20480M');
    }

    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor)).toEqual({ vms: [], machines: [], isos: [] });
    expect(await addressesInUse(testFleet.store)).toEqual([]);
    const phases = await phasesIn(testFleet.store);
    expect(phases).toEqual(['gone', 'gone']);
  });
});
