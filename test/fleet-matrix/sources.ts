// SPDX-License-Identifier: Apache-2.0
// The simulated site, and a pool config for each source a VM can be created from.
import type { MachineId } from '../../src/model/machine.ts';
import { formatMarker } from '../../src/model/marker.ts';
import { type ClusterDescription, defaultCluster } from '../../src/sim/proxmox/index.ts';

export const SOURCE_NAMES = ['image', 'full', 'linked', 'netboot'] as const;
export type SourceName = (typeof SOURCE_NAMES)[number];

const SHA256 = 'ab'.repeat(32);
const IMAGE_URL = 'https://images.example/noble-with-agent.img';
export const TOKEN = '00000000-0000-4000-8000-000000000001';

const FROM: Readonly<Record<SourceName, string>> = {
  image: '{ image: noble }',
  full: '{ template: base, clone: full }',
  linked: '{ template: base, clone: linked }',
  netboot: '{ netboot: {} }',
};

const OTHER_CLUSTER = 'c0ffee00-0000-4000-8000-00000000000f';
const OTHER_MACHINE = '0a1b2c3d-7777-4000-8000-000000000001';
/** VM of another pvescaler cluster, in the same VM id range and with the same pool name. */
const OTHER_CLUSTER_VM_ID = 1_250;
/** A user's copy of a machine. */
export const USER_COPY_VM_ID = 1_299;

/** Unmanaged VMs and templates: pvescaler must never change them. */
export function isUnmanagedVm(vmId: number): boolean {
  return vmId >= 9_000 || vmId === OTHER_CLUSTER_VM_ID || vmId === USER_COPY_VM_ID;
}

function otherClusterVm() {
  const marker = formatMarker({
    cluster: OTHER_CLUSTER,
    pool: 'workers',
    machine: OTHER_MACHINE as MachineId,
    vmId: OTHER_CLUSTER_VM_ID,
    createdAtSeconds: 1_700_000_000,
    addresses: ['10.20.10.99/16'],
  });
  return {
    id: OTHER_CLUSTER_VM_ID,
    host: 'pve1',
    config: {
      name: 'workers-0a1b2c3d',
      tags: 'ca-group-workers;pvescaler',
      description: marker,
      scsi0: 'local-lvm:3',
      smbios1: `uuid=${OTHER_MACHINE}`,
    },
  };
}

export function matrixCluster(): ClusterDescription {
  return {
    ...defaultCluster(3),
    urls: [
      {
        url: IMAGE_URL,
        size: 600 * 2 ** 20,
        virtualSize: 3 * 2 ** 30,
        checksums: { sha256: SHA256 },
      },
    ],
    vms: [otherClusterVm(), ...templates()],
  };
}

/** A template of the same name on each host, because their disks are on local storage. */
function templates() {
  return ['pve1', 'pve2', 'pve3'].map((host, at) => ({
    id: 9_000 + at,
    host,
    template: true,
    image: 'noble-with-agent.qcow2',
    config: {
      name: 'base',
      cores: '1',
      memory: '1024',
      agent: '1',
      scsihw: 'virtio-scsi-single',
      scsi0: 'local-lvm:3',
      net0: 'virtio,bridge=vmbr0',
      boot: 'order=scsi0',
      smbios1: `uuid=0a1b2c3d-9999-4000-8000-00000000000${at}`,
    },
  }));
}

export interface SiteAddress {
  readonly folder: string;
  readonly url: string;
  readonly fingerprint: string;
  /** Whether the records are in the cluster of the file `kubeconfig`. */
  readonly isInKubernetes?: boolean;
}

export function configText(source: SourceName, site: SiteAddress): string {
  const { folder, url, fingerprint, isInKubernetes = false } = site;
  const records = isInKubernetes ? ', kubernetes: { namespace: pvescaler }' : '';
  const cluster = isInKubernetes
    ? `cluster: { kubeconfig: ${folder}/kubeconfig, poolObjects: false }`
    : '';
  return `
apiVersion: pvescaler.dev/v1alpha1
state: { path: ${folder}/state/state.db${records} }
${cluster}
proxmox:
  lab:
    endpoints: ["${url}"]
    tls: { fingerprints: ["${fingerprint}"] }
    token: { id: "scaler@pve!sim", secretFile: ${folder}/token }
    vmIds: 1250-1300
    storage: { images: local, seeds: shared, disks: local-lvm }
images:
  noble: { url: ${IMAGE_URL}, checksum: "sha256:${SHA256}" }
templates:
  base: { name: base }
pools:
  - name: workers
    from: ${FROM[source]}
    join: none
    size: { cpu: 2, memory: 2Gi, disk: 20Gi }
    limits: { min: 0, max: 3 }
    network:
      ip: { pool: 10.20.10.11-10.20.10.13, prefix: 16, gateway: 10.20.0.1 }
`;
}
