// SPDX-License-Identifier: Apache-2.0
// Nodes, DaemonSets and storage objects, converted from Kubernetes objects.

import { describe, expect, test } from 'vitest';
import {
  csiNodeFromKubernetes,
  csiStorageCapacityFromKubernetes,
  driversReportingCapacity,
  volumeAttachmentFromKubernetes,
} from './csi.ts';
import { daemonSetFromKubernetes } from './daemon-set.ts';
import {
  attachLimitDriver,
  csiMigrationOf,
  inTreePluginName,
  readInTreeDisk,
} from './in-tree-disk.ts';
import { nodeFromKubernetes } from './node.ts';
import { persistentVolumeFromKubernetes } from './persistent-volume.ts';
import { storageClassFromKubernetes } from './storage-class.ts';
import { volumeClaimFromKubernetes } from './volume-claim.ts';

describe('nodeFromKubernetes', () => {
  test('gives an empty Node no allocatable resources', () => {
    expect(nodeFromKubernetes({ metadata: { name: 'n' } })).toEqual({
      ok: true,
      value: {
        name: 'n',
        labels: {},
        taints: [],
        isUnschedulable: false,
        allocatable: {
          cpuMilli: 0,
          memoryBytes: 0,
          ephemeralStorageBytes: 0,
          pods: 0,
          extended: {},
        },
        declaredFeatures: [],
      },
    });
  });

  test('keeps labels, taints, cordon and allocatable resources', () => {
    const node = nodeFromKubernetes({
      metadata: { name: 'n', labels: { a: 'b' } },
      spec: { unschedulable: true, taints: [{ key: 'k', effect: 'NoExecute' }] },
      status: { allocatable: { cpu: '2', 'a.b/c': 3 } },
    });
    expect(node).toMatchObject({
      value: {
        labels: { a: 'b' },
        isUnschedulable: true,
        taints: [{ key: 'k', value: '', effect: 'NoExecute' }],
        allocatable: { cpuMilli: 2000, extended: { 'a.b/c': 3 } },
      },
    });
  });

  test('refuses invalid values and names the node', () => {
    const odd = { metadata: { name: 'odd' } };
    expect(
      nodeFromKubernetes({ ...odd, spec: { taints: [{ key: 'k', effect: '?' }] } }),
    ).toMatchObject({
      problem: expect.stringContaining("node 'odd'"),
    });
    expect(nodeFromKubernetes({ ...odd, status: { allocatable: { cpu: '?' } } })).toMatchObject({
      problem: expect.stringContaining("node 'odd'"),
    });
  });
});

describe('daemonSetFromKubernetes', () => {
  const source = (spec: object): Parameters<typeof daemonSetFromKubernetes>[0] => ({
    metadata: { name: 'd', namespace: 'n', uid: 'u' },
    spec: { template: { metadata: { labels: { a: 'b' } }, spec } },
  });

  test('adds the tolerations of the DaemonSet controller to its pod', () => {
    const read = daemonSetFromKubernetes(
      source({ tolerations: [{ key: 'own', operator: 'Exists' }] }),
    );
    expect(read).toMatchObject({
      ok: true,
      value: {
        name: 'd',
        namespace: 'n',
        pod: { name: 'd', labels: { a: 'b' }, controller: { kind: 'DaemonSet', uid: 'u' } },
      },
    });
    expect(
      read.ok && read.value.pod.tolerations.map(({ key, effect }) => `${key}:${effect}`),
    ).toEqual([
      'own:',
      'node.kubernetes.io/not-ready:NoExecute',
      'node.kubernetes.io/unreachable:NoExecute',
      'node.kubernetes.io/disk-pressure:NoSchedule',
      'node.kubernetes.io/memory-pressure:NoSchedule',
      'node.kubernetes.io/pid-pressure:NoSchedule',
      'node.kubernetes.io/unschedulable:NoSchedule',
    ]);
  });

  test('tolerates an unavailable network if the pod uses the host network', () => {
    const read = daemonSetFromKubernetes(source({ hostNetwork: true }));
    expect(read.ok && read.value.pod.tolerations.at(-1)?.key).toBe(
      'node.kubernetes.io/network-unavailable',
    );
  });

  test('adds the defaults that the API server adds to pods, not to templates', () => {
    const pod = (spec: object): object => {
      const read = daemonSetFromKubernetes(source(spec));
      if (!read.ok) throw new Error(read.problem);
      return read.value.pod;
    };
    const resources = { requests: { cpu: '1' }, limits: { cpu: '2', memory: '1Ki' } };
    expect(
      pod({
        containers: [{ resources }],
        initContainers: [{ resources: { limits: { cpu: '3' } } }],
      }),
    ).toMatchObject({ requests: { cpuMilli: 3000, memoryBytes: 1024 } });
    const ports = [{ containerPort: 80 }, { containerPort: 443, hostPort: 443 }];
    expect(pod({ hostNetwork: true, containers: [{ ports }] })).toMatchObject({
      hostPorts: [{ port: 80 }, { port: 443 }],
    });
    expect(pod({ containers: [{ ports }] })).toMatchObject({ hostPorts: [{ port: 443 }] });
  });

  test('takes limits of the whole pod as requests that neither it nor its containers have', () => {
    const limits = { cpu: '4', memory: '4Ki', 'hugepages-2Mi': '4Mi' };
    const requests = { cpu: '1', 'hugepages-2Mi': '2Mi' };
    const read = (spec: object): unknown => daemonSetFromKubernetes(source(spec));
    expect(
      read({ resources: { limits }, containers: [{ resources: { requests } }] }),
    ).toMatchObject({
      value: {
        pod: {
          requests: {
            cpuMilli: 1000,
            memoryBytes: 4096,
            extended: { 'hugepages-2Mi': 4 * 2 ** 20 },
          },
        },
      },
    });
    expect(read({ resources: { limits, requests: { cpu: '2' } } })).toMatchObject({
      value: { pod: { requests: { cpuMilli: 2000, memoryBytes: 4096 } } },
    });
  });

  test('refuses invalid values and names the DaemonSet', () => {
    expect(daemonSetFromKubernetes(source({ tolerations: [{ operator: '?' }] }))).toMatchObject({
      problem: expect.stringContaining("DaemonSet 'd'"),
    });
    expect(daemonSetFromKubernetes({ metadata: { name: 'bare' } })).toMatchObject({
      ok: true,
      value: { namespace: 'default' },
    });
  });
});

describe('conversion of storage objects', () => {
  test('converts a PersistentVolume', () => {
    const read = persistentVolumeFromKubernetes({
      metadata: { name: 'v', annotations: { 'volume.beta.kubernetes.io/storage-class': 'old' } },
      spec: {
        capacity: { storage: '1Gi' },
        storageClassName: 'new',
        claimRef: { namespace: 'n', name: 'c' },
        csi: { driver: 'd', volumeHandle: 'h' },
        nodeAffinity: { required: { nodeSelectorTerms: [{}] } },
      },
      status: { phase: 'Available' },
    });
    expect(read).toMatchObject({
      value: {
        storageClass: 'old',
        mode: 'Filesystem',
        isAvailable: true,
        isTerminating: false,
        claimRef: { namespace: 'n', name: 'c', uid: '' },
        csi: { driver: 'd', handle: 'h' },
      },
    });
    expect(read.ok && read.value.capacityNano).toBe(2n ** 30n * 10n ** 9n);
    expect(persistentVolumeFromKubernetes({ metadata: { name: 'v' } })).toMatchObject({
      value: { storageClass: '', accessModes: [], isAvailable: false, capacityNano: 0n },
    });
    expect(
      persistentVolumeFromKubernetes({
        metadata: { name: 'v' },
        spec: { capacity: { storage: '?' } },
      }),
    ).toMatchObject({
      problem: expect.stringContaining("volume 'v'"),
    });
  });

  test('converts a PersistentVolumeClaim', () => {
    const read = volumeClaimFromKubernetes({
      metadata: {
        name: 'c',
        annotations: { 'volume.kubernetes.io/selected-node': 'n' },
        ownerReferences: [{ uid: 'no' }, { uid: 'yes', controller: true }],
      },
      spec: { volumeName: 'v', storageClassName: 's', resources: { requests: { storage: '1k' } } },
      status: { phase: 'Lost' },
    });
    expect(read).toMatchObject({
      value: {
        namespace: 'default',
        ownerUid: 'yes',
        volumeName: 'v',
        storageClass: 's',
        isBindCompleted: false,
        selectedNode: 'n',
        isLost: true,
        requestNano: 10n ** 12n,
      },
    });
    const bare = volumeClaimFromKubernetes({ metadata: { name: 'c' } });
    expect(
      bare.ok && [bare.value.requestNano, bare.value.selector, bare.value.selectedNode],
    ).toEqual([undefined, undefined, undefined]);
    expect(
      volumeClaimFromKubernetes({
        metadata: { name: 'c' },
        spec: { resources: { requests: { storage: '?' } } },
      }).ok,
    ).toBe(false);
    expect(
      volumeClaimFromKubernetes({
        metadata: { name: 'c' },
        spec: { selector: { matchExpressions: [{ key: 'a', operator: '?' }] } },
      }),
    ).toMatchObject({
      problem: expect.stringContaining("claim 'c'"),
    });
  });

  test('converts a StorageClass', () => {
    expect(storageClassFromKubernetes({ metadata: { name: 's' } })).toEqual({
      name: 's',
      provisioner: '',
      binding: 'unset',
      allowedTopologies: [],
    });
    const full = {
      metadata: { name: 's' },
      provisioner: 'p',
      volumeBindingMode: 'Immediate',
      allowedTopologies: [{ matchLabelExpressions: [{ key: 'k', values: ['v'] }] }, {}],
    };
    expect(storageClassFromKubernetes(full)).toMatchObject({
      binding: 'immediate',
      allowedTopologies: [[{ key: 'k', operator: 'In', values: ['v'] }], []],
    });
    expect(
      storageClassFromKubernetes({ ...full, volumeBindingMode: 'WaitForFirstConsumer' }).binding,
    ).toBe('first-consumer');
  });
});

describe('conversion of CSI objects', () => {
  test('reads attach limits and migrated plugins', () => {
    const node = csiNodeFromKubernetes({
      metadata: {
        name: 'n',
        annotations: { 'storage.alpha.kubernetes.io/migrated-plugins': 'a,b' },
      },
      spec: { drivers: [{ name: 'd', allocatable: { count: 0 } }, { name: 'e' }] },
    });
    expect([...node.limits]).toEqual([['d', 0]]);
    expect([...node.migratedPlugins]).toEqual(['a', 'b']);
    expect(csiNodeFromKubernetes({ metadata: { name: 'n' } }).migratedPlugins.size).toBe(0);
  });

  test('reads the reported capacity', () => {
    expect(
      csiStorageCapacityFromKubernetes({
        storageClassName: 's',
        capacity: '1k',
        maximumVolumeSize: '1',
      }),
    ).toMatchObject({
      value: { largestBytes: 1n, nodes: { selects: 'nothing' } },
    });
    expect(csiStorageCapacityFromKubernetes({ storageClassName: 's', capacity: '?' }).ok).toBe(
      false,
    );
    expect(
      csiStorageCapacityFromKubernetes({
        storageClassName: 's',
        nodeTopology: { matchExpressions: [{ key: 'a', operator: '?' }] },
      }).ok,
    ).toBe(false);
    expect([
      ...driversReportingCapacity([
        { metadata: { name: 'a' }, spec: { storageCapacity: true } },
        { metadata: { name: 'b' } },
      ]),
    ]).toEqual(['a']);
  });

  test('reads attachments', () => {
    const spec = { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'v' } };
    expect(volumeAttachmentFromKubernetes({ spec })).toEqual({
      driver: 'd',
      nodeName: 'n',
      volumeName: 'v',
    });
    expect(volumeAttachmentFromKubernetes({ spec: { ...spec, attacher: '' } })).toBeUndefined();
    expect(volumeAttachmentFromKubernetes({ spec: { ...spec, source: {} } })).toBeUndefined();
  });
});

describe('in-tree disks', () => {
  test.each([
    [{ awsElasticBlockStore: { volumeID: 'x' } }, 'aws-ebs'],
    [{ gcePersistentDisk: { pdName: 'x' } }, 'gce-pd'],
    [{ azureDisk: { diskURI: 'x' } }, 'azure-disk'],
    [{ cinder: { volumeID: 'x' } }, 'cinder'],
    [{ portworxVolume: { volumeID: 'x' } }, 'portworx-volume'],
    [{ iscsi: { iqn: 'x' } }, 'iscsi'],
    [{ rbd: { image: 'x' } }, 'rbd'],
  ])('reads %j', (source, kind) => {
    expect(readInTreeDisk(source)).toMatchObject({ kind, id: 'x', isReadOnly: false });
  });

  test('maps in-tree plugins to their CSI drivers', () => {
    expect(readInTreeDisk({})).toBeUndefined();
    expect(inTreePluginName('aws-ebs')).toBe('kubernetes.io/aws-ebs');
    expect(csiMigrationOf('cinder')?.driver).toBe('cinder.csi.openstack.org');
    expect(csiMigrationOf('iscsi')).toBeUndefined();
    expect(attachLimitDriver('kubernetes.io/cinder')).toBe('cinder.csi.openstack.org');
    expect(attachLimitDriver('kubernetes.io/azure-file')).toBeUndefined();
    expect(attachLimitDriver('kubernetes.io/no-provisioner')).toBe('kubernetes.io/no-provisioner');
    expect(attachLimitDriver('my.csi')).toBe('my.csi');
  });
});
