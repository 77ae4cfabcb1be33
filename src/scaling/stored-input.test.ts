// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { csiNodeFromKubernetes, csiStorageCapacityFromKubernetes } from '../model/csi.ts';
import { persistentVolumeFromKubernetes } from '../model/persistent-volume.ts';
import { volumeClaimFromKubernetes } from '../model/volume-claim.ts';
import type { ClusterObjects } from '../scheduling/index.ts';
import { unwrap } from '../scheduling/testing/builders.ts';
import { aClaim, aVolume, inZone } from '../scheduling/testing/storage.ts';
import { decide } from './decide.ts';
import { canonicalJson, parseStoredInput, restoreInput, storeInput } from './index.ts';
import {
  aMachineId,
  anInput,
  aPod,
  aScalingMachine,
  aWorkerNode,
  MINUTE,
  NOW,
} from './testing/builders.ts';

function aCase() {
  const nodes = [aWorkerNode('w-1'), aWorkerNode('w-2')];
  const pods = [
    aPod({ name: 'running', on: 'w-1', cpu: '500m' }),
    aPod({ name: 'waiting', cpu: '64' }),
  ];
  const input = anInput({
    nodes,
    pods,
    machines: [aScalingMachine({ id: 1, on: 'w-1' })],
    memory: { assignments: {}, unneededSince: { [aMachineId(1)]: NOW - 10 * MINUTE } },
  });
  const objects: ClusterObjects = {
    nodes,
    pods,
    namespaces: new Map([['default', { team: 'a' }]]),
    storage: { capacityDrivers: new Set(['csi']) },
  };
  return { input, objects };
}

it('a stored input gives the same plan and the same memory', () => {
  const { input, objects } = aCase();
  const stored = parseStoredInput(canonicalJson(storeInput(input, objects)));
  expect(stored).toBeDefined();
  const again = decide(restoreInput(stored!));
  expect(again.plan.steps).not.toEqual([]);
  expect(canonicalJson(again)).toBe(canonicalJson(decide(input)));
});

it('a stored input has the volumes, claims and limits of storage drivers', () => {
  const { input, objects } = aCase();
  const storage = {
    volumes: [unwrap(persistentVolumeFromKubernetes(aVolume('pv-1', inZone('pve1'))))],
    claims: [unwrap(volumeClaimFromKubernetes(aClaim('data')))],
    capacities: [
      unwrap(csiStorageCapacityFromKubernetes({ storageClassName: 'local', capacity: '100Gi' })),
    ],
    csiNodes: [
      csiNodeFromKubernetes({
        metadata: { name: 'w-1' },
        spec: { drivers: [{ name: 'csi', allocatable: { count: 20 } }] },
      }),
    ],
    capacityDrivers: new Set(['csi']),
  };
  const stored = storeInput(input, { ...objects, storage });
  expect(parseStoredInput(canonicalJson(stored))).toEqual(stored);
});

it('a plan is plain data', () => {
  const { plan } = decide(aCase().input);
  expect(JSON.parse(JSON.stringify(plan))).toEqual(JSON.parse(canonicalJson(plan)));
});

it('equal inputs have equal text, whatever the order of their keys', () => {
  expect(canonicalJson({ b: 1, a: { d: 2, c: undefined } })).toBe('{"a":{"d":2},"b":1}');
});

it.each(['', '{', '[]', '{}', '{"version":2,"cluster":{}}'])('refuses %j', (text) => {
  expect(parseStoredInput(text)).toBeUndefined();
});
