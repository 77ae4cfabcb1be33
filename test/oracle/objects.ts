// SPDX-License-Identifier: Apache-2.0
// Kubernetes objects of a case: plain JSON that is edited in place when a case is shrunk.

export type Labels = Record<string, string>;
export type Quantities = Record<string, string>;

export interface Requirement {
  key: string;
  operator: string;
  values?: string[];
}

export interface LabelSelector {
  matchLabels?: Labels;
  matchExpressions?: Requirement[];
}

export interface NodeSelectorTerm {
  matchExpressions?: Requirement[];
  matchFields?: Requirement[];
}

export interface NodeSelector {
  nodeSelectorTerms: NodeSelectorTerm[];
}

export interface PodAffinityTerm {
  labelSelector?: LabelSelector;
  topologyKey: string;
  namespaces?: string[];
  namespaceSelector?: LabelSelector;
  matchLabelKeys?: string[];
  mismatchLabelKeys?: string[];
}

export interface PodAffinity {
  requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[];
  preferredDuringSchedulingIgnoredDuringExecution?: {
    weight: number;
    podAffinityTerm: PodAffinityTerm;
  }[];
}

export interface Affinity {
  nodeAffinity?: {
    requiredDuringSchedulingIgnoredDuringExecution?: NodeSelector;
    preferredDuringSchedulingIgnoredDuringExecution?: {
      weight: number;
      preference: NodeSelectorTerm;
    }[];
  };
  podAffinity?: PodAffinity;
  podAntiAffinity?: PodAffinity;
}

export interface SpreadConstraint {
  maxSkew: number;
  topologyKey: string;
  whenUnsatisfiable: string;
  labelSelector?: LabelSelector;
  minDomains?: number;
  nodeAffinityPolicy?: string;
  nodeTaintsPolicy?: string;
  matchLabelKeys?: string[];
}

export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
}

export interface Port {
  containerPort: number;
  hostPort?: number;
  hostIP?: string;
  protocol?: string;
}

export interface Container {
  name: string;
  restartPolicy?: string;
  restartPolicyRules?: { action: string; exitCodes: { operator: string; values: number[] } }[];
  resources?: { requests?: Quantities; limits?: Quantities };
  ports?: Port[];
}

export interface ContainerStatus {
  name: string;
  allocatedResources?: Quantities;
  resources?: { requests?: Quantities };
}

export interface Volume {
  name: string;
  persistentVolumeClaim?: { claimName: string };
  ephemeral?: { volumeClaimTemplate: { spec: object } };
  emptyDir?: object;
  gcePersistentDisk?: { pdName: string; readOnly?: boolean };
  awsElasticBlockStore?: { volumeID: string };
  iscsi?: { targetPortal: string; iqn: string; lun: number; readOnly?: boolean };
  rbd?: { monitors: string[]; pool: string; image: string; readOnly?: boolean };
}

export interface PodSpec {
  nodeName?: string;
  priority?: number;
  hostNetwork?: boolean;
  hostUsers?: boolean;
  containers: Container[];
  initContainers?: Container[];
  overhead?: Quantities;
  resources?: { requests?: Quantities; limits?: Quantities };
  tolerations?: Toleration[];
  nodeSelector?: Labels;
  affinity?: Affinity;
  topologySpreadConstraints?: SpreadConstraint[];
  volumes?: Volume[];
}

export interface PodStatus {
  phase?: string;
  nominatedNodeName?: string;
  conditions?: { type: string; status: string; reason: string }[];
  containerStatuses?: ContainerStatus[];
  initContainerStatuses?: ContainerStatus[];
  allocatedResources?: Quantities;
  resources?: { requests?: Quantities };
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
}

export interface ReplicaSet {
  metadata: { name: string; namespace: string; uid: string };
  spec: { selector: LabelSelector };
}

export interface Pod {
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    labels?: Labels;
    deletionTimestamp?: string;
    ownerReferences?: OwnerReference[];
  };
  spec: PodSpec;
  status?: PodStatus;
}

export interface Taint {
  key: string;
  value?: string;
  effect: string;
}

export interface Node {
  metadata: { name: string; labels?: Labels };
  spec: { unschedulable?: boolean; taints?: Taint[] };
  status: { allocatable: Quantities; declaredFeatures?: string[] };
}

export interface Namespace {
  metadata: { name: string; labels?: Labels };
}

export interface PersistentVolume {
  metadata: { name: string; labels?: Labels; deletionTimestamp?: string };
  spec: {
    volumeAttributesClassName?: string;
    capacity: Quantities;
    accessModes: string[];
    volumeMode?: string;
    storageClassName?: string;
    claimRef?: { namespace: string; name: string; uid?: string };
    nodeAffinity?: { required: NodeSelector };
    csi?: { driver: string; volumeHandle: string };
    gcePersistentDisk?: { pdName: string };
    awsElasticBlockStore?: { volumeID: string };
    nfs?: { server: string; path: string };
  };
  status: { phase: string };
}

export interface Claim {
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    annotations?: Labels;
    deletionTimestamp?: string;
    ownerReferences?: OwnerReference[];
  };
  spec: {
    accessModes: string[];
    volumeMode?: string;
    volumeName?: string;
    storageClassName?: string;
    volumeAttributesClassName?: string;
    selector?: LabelSelector;
    resources: { requests: Quantities };
  };
  status: { phase: string };
}

export interface StorageClass {
  metadata: { name: string };
  provisioner: string;
  volumeBindingMode: string;
  allowedTopologies?: { matchLabelExpressions: { key: string; values: string[] }[] }[];
}

export interface CsiNode {
  metadata: { name: string; annotations?: Labels };
  spec: { drivers: { name: string; nodeID: string; allocatable?: { count: number } }[] };
}

export interface CsiDriver {
  metadata: { name: string };
  spec: { storageCapacity: boolean };
}

export interface CsiStorageCapacity {
  metadata: { name: string; namespace: string };
  storageClassName: string;
  nodeTopology?: LabelSelector;
  capacity?: string;
  maximumVolumeSize?: string;
}

export interface VolumeAttachment {
  metadata: { name: string };
  spec: { attacher: string; nodeName: string; source: { persistentVolumeName: string } };
}

export interface Cluster {
  nodes: Node[];
  pods: Pod[];
  namespaces: Namespace[];
  persistentVolumes: PersistentVolume[];
  persistentVolumeClaims: Claim[];
  storageClasses: StorageClass[];
  csiNodes: CsiNode[];
  csiDrivers: CsiDriver[];
  csiStorageCapacities: CsiStorageCapacity[];
  volumeAttachments: VolumeAttachment[];
}

/** New lists: a generator adds objects to them. */
export function emptyCluster(): Cluster {
  return {
    nodes: [],
    pods: [],
    namespaces: [],
    persistentVolumes: [],
    persistentVolumeClaims: [],
    storageClasses: [],
    csiNodes: [],
    csiDrivers: [],
    csiStorageCapacities: [],
    volumeAttachments: [],
  };
}

/** A cluster and its pending pods. All of them are valid for the API server. */
export interface Case {
  cluster: Cluster;
  pending: Pod[];
  /** Feature gates that differ from the defaults of the release. */
  featureGates?: { NodeDeclaredFeatures?: boolean; TaintTolerationComparisonOperators?: boolean };
}
