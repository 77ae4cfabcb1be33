// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { kubeletMayNotSet } from '../model/labels.ts';
import { registrationOf, STARTUP_TAINT } from './registration.ts';
import { aSeedInput, value } from './testing/a-seed.ts';

const { machine, pool } = aSeedInput();
const withLabels = (labels: Readonly<Record<string, string>>) =>
  registrationOf(machine, { ...pool, labels });

describe('registrationOf', () => {
  it('names the node and its place', () => {
    expect(value(registrationOf(machine, pool))).toEqual({
      nodeName: 'worker-7c9e6679',
      providerId: 'proxmox://lab/1250',
      kubeletLabels: {
        'autoscaler.proxmox/group': 'small',
        'autoscaler.proxmox/vmid': '1250',
        'node.kubernetes.io/instance-type': 'medium',
        tier: 'small',
        'topology.kubernetes.io/region': 'lab',
        'topology.kubernetes.io/zone': 'pve1',
      },
      labelsToPatch: {},
      taints: [],
    });
  });

  it('sets labels apart that a kubelet may not set, behind a taint', () => {
    const split = value(withLabels({ 'node-role.kubernetes.io/worker': '', a: 'b' }));
    expect(split.labelsToPatch).toEqual({ 'node-role.kubernetes.io/worker': '' });
    expect(split.kubeletLabels).not.toHaveProperty('node-role.kubernetes.io/worker');
    expect(split.taints).toEqual([STARTUP_TAINT]);
    // What the Cluster Autoscaler asks for of a taint that goes away by itself.
    expect(STARTUP_TAINT.key).toMatch(/^ignore-taint\.cluster-autoscaler\.kubernetes\.io\/./);
  });

  it('splits any labels into two halves that make a whole', () => {
    const name = fc.stringMatching(/^[a-z0-9]{1,10}$/);
    const domain = fc.constantFrom(
      '',
      'kubernetes.io/',
      'x.k8s.io/',
      'node.kubernetes.io/',
      'a.b/',
    );
    const labels = fc.dictionary(
      fc.tuple(domain, name).map((parts) => parts.join('')),
      name,
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(labels, (given) => {
        const { kubeletLabels, labelsToPatch, taints } = value(withLabels(given));
        expect({ ...kubeletLabels, ...labelsToPatch }).toMatchObject(given);
        expect(Object.keys(kubeletLabels).some(kubeletMayNotSet)).toBe(false);
        expect(Object.keys(labelsToPatch).every(kubeletMayNotSet)).toBe(true);
        expect(taints.length).toBe(Object.keys(labelsToPatch).length > 0 ? 1 : 0);
      }),
    );
  });

  it("lets a pool choose its zone, but not another machine's identity", () => {
    const zone = value(withLabels({ 'topology.kubernetes.io/zone': 'rack-1' }));
    expect(zone.kubeletLabels['topology.kubernetes.io/zone']).toBe('rack-1');
    expect(withLabels({ 'autoscaler.proxmox/vmid': '7' })).toEqual({
      ok: false,
      problem: "label 'autoscaler.proxmox/vmid' is set for each machine",
    });
    expect(withLabels({ 'autoscaler.proxmox/group': 'small' }).ok).toBe(true);
  });

  it('has no instance type without one, takes another group label, and refuses what is no label', () => {
    const plain = value(
      registrationOf({ ...machine, instanceType: undefined }, { ...pool, groupLabel: 'x.org/g' }),
    );
    expect(plain.kubeletLabels).not.toHaveProperty('node.kubernetes.io/instance-type');
    expect(plain.kubeletLabels['x.org/g']).toBe('small');
    expect(withLabels({ 'a b': 'c' }).ok).toBe(false);
    expect(registrationOf({ ...machine, host: 'pve 1' }, pool).ok).toBe(false);
  });

  it('has no taint twice', () => {
    const gpu = { key: 'gpu', value: '1', effect: 'NoSchedule' } as const;
    const taints = [gpu, { ...gpu, value: '2' }, STARTUP_TAINT];
    const labels = { 'node-role.kubernetes.io/gpu': '' };
    const { taints: found } = value(registrationOf(machine, { ...pool, labels, taints }));
    expect(found).toEqual([{ ...gpu, value: '2' }, STARTUP_TAINT]);
  });
});
