// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { PodSpecSource, QuantityMap } from '../../model/pod-source.ts';
import { checkFit } from '../index.ts';
import { aCluster, aPod, type NodeOptions, type PodOptions } from '../testing/builders.ts';

function shortfalls(
  pod: PodOptions,
  node: NodeOptions = {},
  pods: readonly PodOptions[] = [],
): unknown {
  const verdict = checkFit(
    aCluster({
      nodes: [node],
      pods: pods.map((one, i) => ({ name: `p${i}`, on: 'node-1', ...one })),
    }),
    aPod(pod),
    'node-1',
  );
  if (verdict.fits) return [];
  expect(verdict.reasons).toHaveLength(1);
  const [reason] = verdict.reasons;
  return reason?.filter === 'NodeResourcesFit' ? reason.shortfalls : reason;
}

function asking(requests: QuantityMap): PodOptions {
  return { spec: { containers: [{ resources: { requests } }] } };
}

describe('NodeResourcesFit', () => {
  test('accepts a pod that fills the node exactly and rejects one unit more', () => {
    expect(shortfalls({ cpu: '4', memory: '8Gi' })).toEqual([]);
    expect(shortfalls({ cpu: '4001m', memory: '8589934593' })).toEqual([
      { resource: 'cpu', requested: 4001, used: 0, allocatable: 4000 },
      { resource: 'memory', requested: 8589934593, used: 0, allocatable: 8589934592 },
    ]);
  });

  test('counts running and terminating pods', () => {
    const running = [{ cpu: '3' }, { cpu: '500m', terminating: true }];
    expect(shortfalls({ cpu: '500m' }, {}, running)).toEqual([]);
    expect(shortfalls({ cpu: '501m' }, {}, running)).toEqual([
      { resource: 'cpu', requested: 501, used: 3500, allocatable: 4000 },
    ]);
  });

  test('checks requested resources only, so an overcommitted node may pass', () => {
    const running = [{ cpu: '9', memory: '1Gi' }];
    expect(shortfalls({ memory: '1Gi' }, {}, running)).toEqual([]);
    expect(shortfalls({}, {}, running)).toEqual([]);
    expect(shortfalls({ cpu: '1m' }, {}, running)).toHaveLength(1);
  });

  test('limits the number of pods, and an absent number means 0', () => {
    const node = { allocatable: { pods: '1' } };
    expect(shortfalls({}, node)).toEqual([]);
    expect(shortfalls({}, node, [{}])).toEqual([
      { resource: 'pods', requested: 1, used: 1, allocatable: 1 },
    ]);
    expect(shortfalls({}, { allocatable: { pods: '0' } })).toHaveLength(1);
  });

  test('checks ephemeral storage and extended resources', () => {
    const node = { allocatable: { 'ephemeral-storage': '10Gi', 'nvidia.com/gpu': '2' } };
    expect(
      shortfalls(asking({ 'ephemeral-storage': '10Gi', 'nvidia.com/gpu': '2' }), node),
    ).toEqual([]);
    const gpu = asking({ 'nvidia.com/gpu': '1' });
    expect(shortfalls(asking({ 'nvidia.com/gpu': '2' }), node, [gpu])).toEqual([
      { resource: 'nvidia.com/gpu', requested: 2, used: 1, allocatable: 2 },
    ]);
    expect(shortfalls(gpu)).toEqual([
      { resource: 'nvidia.com/gpu', requested: 1, used: 0, allocatable: 0 },
    ]);
    expect(shortfalls(asking({ 'ephemeral-storage': '11Gi' }), node)).toMatchObject([
      { resource: 'ephemeral-storage' },
    ]);
    expect(shortfalls(asking({ 'hugepages-2Mi': '4Mi' }))).toMatchObject([
      { resource: 'hugepages-2Mi', requested: 4194304 },
    ]);
  });

  test('ignores resource names that the scheduler does not check', () => {
    expect(shortfalls(asking({ pods: '500', storage: '1Ti', 'requests.x/y': '9' }))).toEqual([]);
  });

  test('counts the largest init container', () => {
    const spec: PodSpecSource = {
      initContainers: [
        { resources: { requests: { cpu: '3' } } },
        { resources: { requests: { cpu: '4' } } },
      ],
      containers: [{ resources: { requests: { cpu: '1', memory: '1Gi' } } }],
    };
    expect(shortfalls({ spec })).toEqual([]);
    expect(shortfalls({ spec }, {}, [{ cpu: '1m' }])).toMatchObject([{ requested: 4000 }]);
  });

  test('adds sidecars to the containers and to later init containers', () => {
    const sidecar = { restartPolicy: 'Always', resources: { requests: { cpu: '1' } } };
    const init = { resources: { requests: { cpu: '3500m' } } };
    const containers = [{ resources: { requests: { cpu: '1' } } }];
    expect(shortfalls({ spec: { initContainers: [init, sidecar], containers } })).toEqual([]);
    expect(shortfalls({ spec: { initContainers: [sidecar, init], containers } })).toMatchObject([
      { requested: 4500 },
    ]);
  });

  test('uses pod-level requests instead of the sum and adds the overhead', () => {
    const spec: PodSpecSource = {
      containers: [{ resources: { requests: { cpu: '9', 'ephemeral-storage': '1Gi' } } }],
      resources: { requests: { cpu: '1' } },
      overhead: { cpu: '3500m' },
    };
    expect(shortfalls({ spec }, { allocatable: { 'ephemeral-storage': '1Gi' } })).toMatchObject([
      { resource: 'cpu', requested: 4500 },
    ]);
  });

  describe('during an in-place resize', () => {
    const status = (reason?: string): PodOptions['status'] => ({
      containerStatuses: [
        {
          name: 'main',
          allocatedResources: { cpu: '2' },
          resources: { requests: { cpu: '1', memory: '5Gi' } },
        },
      ],
      ...(reason && { conditions: [{ type: 'PodResizePending', reason }] }),
    });

    test('a running pod counts with the maximum of desired, allocated and actual resources', () => {
      const running = [{ cpu: '3', memory: '1Gi', status: status('Deferred') ?? {} }];
      expect(shortfalls({ cpu: '4', memory: '8Gi' }, {}, running)).toEqual([
        { resource: 'cpu', requested: 4000, used: 3000, allocatable: 4000 },
        { resource: 'memory', requested: 8589934592, used: 5368709120, allocatable: 8589934592 },
      ]);
    });

    test('a resize that can never be granted does not count', () => {
      const running = [{ cpu: '3', status: status('Infeasible') ?? {} }];
      expect(shortfalls({ cpu: '3' }, {}, running)).toMatchObject([{ used: 2000 }]);
    });

    test('a pending pod counts with its spec only', () => {
      expect(
        shortfalls(
          { cpu: '1', memory: '1Gi', status: status() ?? {} },
          { allocatable: { cpu: '1', memory: '1Gi' } },
        ),
      ).toEqual([]);
    });
  });
});
