// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { decide } from './decide.ts';
import { explain, type ScalingInput, type SubjectKind } from './index.ts';
import {
  aHost,
  aMachineId,
  anInput,
  aPod,
  aScalingMachine,
  aScalingPool,
  aWorkerNode,
  GIB,
  MINUTE,
  NOW,
} from './testing/builders.ts';

function lines(input: ScalingInput, kind: SubjectKind, name: string): readonly string[] {
  return explain({ input, plan: decide(input).plan }, kind, name).lines.map(({ text }) => text);
}

describe('explain', () => {
  it('says which new machine a pending pod gets', () => {
    const input = anInput({ pods: [aPod({ name: 'web' })] });
    const expected = [
      'has been pending for 5m',
      'gets a new machine: 1 machine of pool workers (4 vCPUs, 8 GiB) for pod default/web, that fits on no node',
    ];
    expect(lines(input, 'pod', 'default/web')).toEqual(expected);
    expect(lines(input, 'pod', 'web')).toEqual(expected);
  });

  it('says where a pending pod will run without a new machine', () => {
    const pods = [aPod({ name: 'web' })];
    const node = anInput({ nodes: [aWorkerNode('w-1')], pods });
    expect(lines(node, 'pod', 'web')[1]).toBe('fits on node w-1: no machine is needed');
    const provisioning = anInput({ machines: [aScalingMachine({ phase: 'booting' })], pods });
    expect(lines(provisioning, 'pod', 'web')[1]).toBe(
      'will fit on workers-1, which is being provisioned',
    );
  });

  it('says why a pod waits, with the numbers of the host', () => {
    const hosts = [aHost('pve2', ['workers'], { memoryBytes: 6.25 * GIB })];
    expect(lines(anInput({ hosts, pods: [aPod({ name: 'web' })] }), 'pod', 'web')[1]).toBe(
      'pod default/web waits: pool workers refused: host pve2 needs 8 GiB, 6.2 GiB free after reserve',
    );
  });

  it('says which pods and nodes it does not know', () => {
    const input = anInput();
    const plan = decide(input).plan;
    for (const kind of ['pod', 'node', 'pool', 'host'] as const)
      expect(explain({ input, plan }, kind, 'missing')).toMatchObject({
        isKnown: false,
        lines: [],
      });
  });

  it('says why a node is kept or removed, and where its pods go', () => {
    const input = anInput({
      nodes: [aWorkerNode('w-1'), aWorkerNode('w-2')],
      machines: [aScalingMachine({ id: 1, on: 'w-1' })],
      pods: [aPod({ name: 'web', on: 'w-1', cpu: '1', memory: '100Mi' })],
      memory: { assignments: {}, unneededSince: { [aMachineId(1)]: NOW - 10 * MINUTE } },
    });
    expect(lines(input, 'node', 'w-1')).toEqual([
      `machine ${aMachineId(1)} of pool workers (4 vCPUs, 8 GiB): cpu 25 % and memory 1.2 % requested, 1 pod to move`,
      'is removed: node w-1 has been unneeded for 10m: cpu 25 % and memory 1.2 % requested, and its pod fits on w-2',
    ]);
    expect(lines(input, 'pod', 'web')).toEqual([
      'runs on node w-1',
      'is evicted and fits on w-2: node w-1 has been unneeded for 10m: cpu 25 % and memory 1.2 % requested, and its pod fits on w-2',
    ]);
    expect(lines(input, 'node', 'w-2')).toEqual([
      'is no node of a pvescaler machine, so it is never removed',
    ]);
    expect(
      lines({ ...input, memory: { assignments: {}, unneededSince: {} } }, 'node', 'w-1')[1],
    ).toBe('node w-1 is unneeded now, and is removed when it has been for 10m');
  });

  it('says that a pool is no longer in the config, and that its machines are kept', () => {
    const input = anInput({ nodes: [aWorkerNode('old-1')] });
    const removedPools = [{ name: 'old', machines: [{ nodeName: 'old-1' }, {}] }];
    const explained = { input, plan: decide(input).plan, removedPools };
    expect(explain(explained, 'pool', 'old')).toMatchObject({
      isKnown: true,
      lines: [
        {
          text: 'is not in the config, so its 2 machines are kept as they are: add the pool again, or run pvescaler pool delete old',
        },
      ],
    });
    expect(explain(explained, 'node', 'old-1').lines).toMatchObject([
      {
        text: 'is of a machine of pool old, which is not in the config, so it is kept as it is: add the pool again, or run pvescaler pool delete old',
      },
    ]);
    expect(explain(explained, 'pool', 'other').isKnown).toBe(false);
  });

  it('says why the pods of a node fit on no other node, with the numbers', () => {
    const input = anInput({
      nodes: ['w-1', 'w-2', 'w-3', 'w-4'].map((name) => aWorkerNode(name)),
      machines: [aScalingMachine({ id: 1, on: 'w-1' })],
      pods: [
        aPod({ name: 'web', on: 'w-1', cpu: '1500m', memory: '100Mi' }),
        ...['w-2', 'w-3'].map((on) => aPod({ name: on, on, cpu: '3', memory: '100Mi' })),
        aPod({ name: 'full', on: 'w-4', cpu: '3500m', memory: '100Mi' }),
      ],
    });
    expect(lines(input, 'node', 'w-1').slice(1)).toEqual([
      'node w-1 is needed: pod default/web would fit on none of 3 other nodes, beside other removals and pending pods',
      'pod default/web does not fit on w-2 and 1 other: cpu: 1500m requested, 3 of 4 used',
      'pod default/web does not fit on w-4: cpu: 1500m requested, 3500m of 4 used',
    ]);
  });

  it('says that the pods of a node fit elsewhere only without other removals', () => {
    const machines = [1, 2].map((id) => aScalingMachine({ id, on: `w-${id}` }));
    const input = anInput({
      nodes: ['w-1', 'w-2'].map((name) => aWorkerNode(name)),
      machines,
      pods: ['w-1', 'w-2'].map((on) => aPod({ name: on, on, cpu: '1', memory: '100Mi' })),
    });
    const kept = ['w-1', 'w-2']
      .map((name) => lines(input, 'node', name))
      .find((all) => all.length > 2);
    expect(kept?.[2]).toBe(
      'its pods fit on other nodes if no other machine is removed and no pod waits',
    );
  });

  it('says what a pool has, does, and is refused', () => {
    const hosts = [aHost('pve2', ['workers'], { cpus: 6 })];
    const pods = ['a', 'b'].map((name) => aPod({ name, cpu: '3' }));
    expect(lines(anInput({ hosts, pods }), 'pool', 'workers')).toEqual([
      'has 0 machines, 0 ready; at least 0, at most 10',
      '1 machine of pool workers (4 vCPUs, 8 GiB) for pod default/a, that fits on no node',
      'pool workers refused: host pve2 needs 4 vCPUs, 2 free',
    ]);
    const paused = [aScalingPool({}, { pause: { until: NOW + MINUTE, message: 'three failed' } })];
    expect(lines(anInput({ pools: paused }), 'pool', 'workers')[1]).toBe(
      'pool workers is paused for 60s: three failed',
    );
  });

  it('says that the region of a pool or a host cannot be read', () => {
    const input = anInput({ hosts: [], unreadRegions: { lab: 'connection refused' } });
    const unread = 'region lab cannot be read, so it gets and loses no machine: connection refused';
    expect(lines(input, 'pool', 'workers')).toContain(unread);
    const other = anInput({ hosts: [], unreadRegions: { attic: 'connection refused' } });
    expect(lines(other, 'pool', 'workers')).toHaveLength(1);
    const { plan } = decide(input);
    for (const name of ['pve2', 'lab/pve2'])
      expect(explain({ input, plan }, 'host', name)).toMatchObject({
        isKnown: false,
        lines: [{ text: unread }],
      });
    expect(lines(input, 'host', 'attic/pve2')).toEqual([]);
  });

  it('says why a pending pod gets no machine whatever the pools are', () => {
    const daemon = anInput({ pods: [aPod({ name: 'agent', controller: 'DaemonSet' })] });
    expect(lines(daemon, 'pod', 'agent')[1]).toBe(
      'belongs to a DaemonSet: a new machine would only get another pod of it',
    );
    const deleted = anInput({ pods: [aPod({ name: 'web', terminating: true })] });
    expect(lines(deleted, 'pod', 'web')[1]).toBe('is being deleted, so it needs no machine');
  });

  it('says what is left of a host', () => {
    const capacity = { cpus: 6, memoryBytes: 10 * GIB, diskBytes: 100 * GIB };
    const input = anInput({
      hosts: [aHost('pve2', ['workers'], capacity)],
      machines: [
        aScalingMachine({
          phase: 'booting',
          placement: { region: 'lab', host: 'pve2', name: 'w' },
        }),
      ],
    });
    const expected = [
      'runs 1 machine',
      'has 6 vCPUs, 10 GiB of memory and 100 GiB of disk left for pool workers',
    ];
    expect(lines(input, 'host', 'lab/pve2')).toEqual(expected);
    expect(lines(input, 'host', 'pve2')).toEqual(expected);
  });
});
