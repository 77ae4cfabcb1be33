// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isKubeletRestrictedLabel } from '../model/labels.ts';
import { buildRegistration, STARTUP_TAINT } from './registration.ts';
import { aSeedInput, unwrap } from './testing/a-seed.ts';

const { machine, pool } = aSeedInput();
const withLabels = (labels: Readonly<Record<string, string>>) =>
  buildRegistration(machine, { ...pool, labels });

describe('buildRegistration', () => {
  it('sets node name, provider id and topology labels', () => {
    expect(unwrap(buildRegistration(machine, pool))).toEqual({
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

  it('separates labels that a kubelet may not set and adds the startup taint', () => {
    const split = unwrap(withLabels({ 'node-role.kubernetes.io/worker': '', a: 'b' }));
    expect(split.labelsToPatch).toEqual({ 'node-role.kubernetes.io/worker': '' });
    expect(split.kubeletLabels).not.toHaveProperty('node-role.kubernetes.io/worker');
    expect(split.taints).toEqual([STARTUP_TAINT]);
    // The Cluster Autoscaler's prefix for taints that are removed after startup.
    expect(STARTUP_TAINT.key).toMatch(/^ignore-taint\.cluster-autoscaler\.kubernetes\.io\/./);
  });

  it('splits all labels into kubelet labels and labels to patch', () => {
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
        const { kubeletLabels, labelsToPatch, taints } = unwrap(withLabels(given));
        expect({ ...kubeletLabels, ...labelsToPatch }).toMatchObject(given);
        expect(Object.keys(kubeletLabels).some(isKubeletRestrictedLabel)).toBe(false);
        expect(Object.keys(labelsToPatch).every(isKubeletRestrictedLabel)).toBe(true);
        expect(taints.length).toBe(Object.keys(labelsToPatch).length > 0 ? 1 : 0);
      }),
    );
  });

  it("lets a pool override the zone, but not the machine's identity", () => {
    const zone = unwrap(withLabels({ 'topology.kubernetes.io/zone': 'rack-1' }));
    expect(zone.kubeletLabels['topology.kubernetes.io/zone']).toBe('rack-1');
    expect(withLabels({ 'autoscaler.proxmox/vmid': '7' })).toEqual({
      ok: false,
      problem: "label 'autoscaler.proxmox/vmid' is reserved: it is set per machine",
    });
    expect(withLabels({ 'autoscaler.proxmox/group': 'small' }).ok).toBe(true);
  });

  it('omits an absent instance type, uses the configured group label, and refuses invalid labels', () => {
    const plain = unwrap(
      buildRegistration(
        { ...machine, instanceType: undefined },
        { ...pool, groupLabel: 'x.org/g' },
      ),
    );
    expect(plain.kubeletLabels).not.toHaveProperty('node.kubernetes.io/instance-type');
    expect(plain.kubeletLabels['x.org/g']).toBe('small');
    expect(withLabels({ 'a b': 'c' }).ok).toBe(false);
    expect(buildRegistration({ ...machine, host: 'pve 1' }, pool).ok).toBe(false);
  });

  it('contains no taint twice', () => {
    const gpu = { key: 'gpu', value: '1', effect: 'NoSchedule' } as const;
    const taints = [gpu, { ...gpu, value: '2' }, STARTUP_TAINT];
    const labels = { 'node-role.kubernetes.io/gpu': '' };
    const { taints: found } = unwrap(buildRegistration(machine, { ...pool, labels, taints }));
    expect(found).toEqual([{ ...gpu, value: '2' }, STARTUP_TAINT]);
  });
});
