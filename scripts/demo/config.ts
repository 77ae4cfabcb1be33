// SPDX-License-Identifier: Apache-2.0
// The config of the demo's daemon.

export type DemoMode = 'standalone' | 'externalgrpc';

export interface ConfigFields {
  readonly mode: DemoMode;
  readonly folder: string;
  readonly proxmoxUrl: string;
  readonly fingerprint: string;
  /** URL of the Kubernetes API. */
  readonly server: string;
  readonly image: { readonly url: string; readonly sha256: string };
  readonly ports: DemoPorts;
}

export interface DemoPorts {
  readonly health: number;
  readonly dashboard: number;
  readonly grpc: number;
}

function formatPool(name: string, size: string, mode: DemoMode): string {
  const autoscaling = `
    scaleUp: { stabilizationWindow: 500ms }
    scaleDown: { unneededTime: 4s, delayAfterAdd: 2s, delayAfterFailure: 2s, maxConcurrent: 4 }`;
  return `
  - name: ${name}
    from: { image: noble }
    join: k3s
    size: ${size}
    limits: { min: 0, max: 8 }${mode === 'standalone' ? autoscaling : ''}
    deletion: { shutdownTimeout: 30s }`;
}

function formatGrpc(folder: string, port: number): string {
  const certs = `${folder}/certs`;
  return `grpc:
  listen: 127.0.0.1:${port}
  tls: { cert: ${certs}/server.crt, key: ${certs}/server.key, clientCa: ${certs}/ca.crt }
`;
}

export function formatConfig(fields: ConfigFields): string {
  const { mode, folder, proxmoxUrl, fingerprint, server, image, ports } = fields;
  return `apiVersion: pvescaler.dev/v1alpha1
mode: ${mode}
cluster: { name: demo, kubeconfig: ${folder}/kubeconfig }
state: { path: ${folder}/state/state.db }
http:
  health: 127.0.0.1:${ports.health}
  dashboard: 127.0.0.1:${ports.dashboard}
  dashboardTokenFile: ${folder}/dashboard-token
pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 }
intervals: { reconcile: 5s${mode === 'standalone' ? ', scan: 1s' : ''} }
${mode === 'externalgrpc' ? formatGrpc(folder, ports.grpc) : ''}proxmox:
  lab:
    endpoints: ["${proxmoxUrl}"]
    tls: { fingerprints: ["${fingerprint}"] }
    token: { id: "scaler@pve!sim", secretFile: ${folder}/token }
    vmIds: 1250-1999
    storage: { images: local, seeds: shared, disks: local-lvm }
images:
  noble: { url: ${image.url}, checksum: "sha256:${image.sha256}" }
join:
  k3s: { server: "${server}", version: v1.34.4+k3s1, token: auto }
pools:${formatPool('small', '{ cpu: 2, memory: 4Gi, disk: 20Gi }', mode)}${formatPool('large', '{ cpu: 4, memory: 8Gi, disk: 40Gi }', mode)}
`;
}
