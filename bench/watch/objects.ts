// SPDX-License-Identifier: Apache-2.0
// Objects of realistic size, mostly fields that the cache drops: managed fields, environment, images.

export interface Serial {
  readonly index: number;
  readonly version: number;
  readonly nodes: number;
}

const MANAGED = ['kube-controller-manager', 'kube-scheduler', 'kubelet'].map((manager) => ({
  manager,
  operation: 'Update',
  apiVersion: 'v1',
  time: '2026-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: {
    'f:metadata': { 'f:generateName': {}, 'f:labels': { '.': {}, 'f:app': {}, 'f:version': {} } },
    'f:spec': { 'f:containers': { 'k:{"name":"main"}': { '.': {}, 'f:env': {}, 'f:image': {} } } },
    'f:status': { 'f:conditions': {}, 'f:containerStatuses': {}, 'f:phase': {}, 'f:podIPs': {} },
  },
}));

const TOLERATIONS = ['not-ready', 'unreachable'].map((key) => ({
  key: `node.kubernetes.io/${key}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}));

const CONDITIONS = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady'].map(
  (type) => ({
    type,
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }),
);

export function podObject({ index, version, nodes }: Serial): object {
  const app = `app-${index % 300}`;
  const name = `${app}-7d4b9c6f5d-${index.toString(36).padStart(5, '0')}`;
  return {
    metadata: {
      name,
      generateName: `${app}-7d4b9c6f5d-`,
      namespace: `team-${index % 40}`,
      uid: uid(index),
      resourceVersion: String(version),
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { app, 'pod-template-hash': '7d4b9c6f5d', version: 'v1', tier: 'backend' },
      annotations: { 'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z' },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: `${app}-7d4b9c6f5d`,
          uid: uid(index % 300),
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: MANAGED,
    },
    spec: podSpec(`node-${index % nodes}`),
    status: podStatus(index),
  };
}

function podSpec(nodeName: string): object {
  const env = Array.from({ length: 12 }, (_, at) => ({
    name: `SETTING_${at}`,
    value: `https://service-${at}.team.svc.cluster.local:8443/path/${at}`,
  }));
  return {
    nodeName,
    containers: ['main', 'proxy'].map((name) => ({
      name,
      image: `registry.example/team/${name}:1.2.3`,
      env,
      ports: [{ containerPort: 8_080, protocol: 'TCP' }],
      resources: { requests: { cpu: '250m', memory: '256Mi' }, limits: { memory: '512Mi' } },
      volumeMounts: [{ name: 'token', readOnly: true, mountPath: '/var/run/secrets' }],
      livenessProbe: { httpGet: { path: '/healthz', port: 8_080 }, periodSeconds: 10 },
      terminationMessagePath: '/dev/termination-log',
    })),
    volumes: [{ name: 'token', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }],
    tolerations: TOLERATIONS,
    restartPolicy: 'Always',
    serviceAccountName: 'default',
    schedulerName: 'default-scheduler',
    priority: 0,
  };
}

function podStatus(index: number): object {
  const ip = `10.${index % 200}.${(index >> 8) % 250}.${index % 250}`;
  return {
    phase: 'Running',
    conditions: CONDITIONS,
    podIP: ip,
    podIPs: [{ ip }],
    startTime: '2026-01-01T00:00:00Z',
    qosClass: 'Burstable',
    containerStatuses: ['main', 'proxy'].map((name) => ({
      name,
      ready: true,
      restartCount: 0,
      image: `registry.example/team/${name}:1.2.3`,
      imageID: `registry.example/team/${name}@sha256:${'ab'.repeat(32)}`,
      containerID: `containerd://${'cd'.repeat(32)}`,
      state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
    })),
  };
}

export function nodeObject({ index, version }: Serial, labels: object = {}): object {
  const name = `node-${index}`;
  const amounts = { cpu: '8', memory: '32Gi', pods: '110', 'ephemeral-storage': '100Gi' };
  const images = Array.from({ length: 30 }, (_, at) => ({
    names: [`registry.example/team/image-${at}@sha256:${'ef'.repeat(32)}`],
    sizeBytes: 100_000_000 + at,
  }));
  return {
    metadata: {
      name,
      uid: uid(1_000_000 + index),
      resourceVersion: String(version),
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/arch': 'amd64',
        'topology.kubernetes.io/zone': `pve${index % 8}`,
        'autoscaler.proxmox/group': `pool-${index % 10}`,
        ...labels,
      },
      annotations: { 'flannel.alpha.coreos.com/backend-data': '{"VNI":1,"VtepMAC":"aa:bb"}' },
      managedFields: MANAGED,
    },
    spec: { providerID: `proxmox://lab/${1_000 + index}`, podCIDR: `10.${index % 250}.0.0/24` },
    status: {
      capacity: amounts,
      allocatable: amounts,
      conditions: ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
        type,
        status: type === 'Ready' ? 'True' : 'False',
        reason: 'KubeletReady',
        message: 'kubelet is posting ready status',
        lastHeartbeatTime: '2026-01-01T00:00:00Z',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      })),
      nodeInfo: { systemUUID: uid(index), kubeletVersion: 'v1.36.2', osImage: 'Debian' },
      images,
    },
  };
}

function uid(index: number): string {
  return `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`;
}
