// SPDX-License-Identifier: Apache-2.0
// `config init`: a valid starter file in which the values to replace are marked `CHANGE`. With `--full` it
// also contains every key and its default as comments.
import { renderAllKeysAsComments } from './all-keys.ts';

export interface StarterOptions {
  readonly mode?: 'standalone' | 'externalgrpc';
  /** Add every key as a comment, with description and default. */
  readonly full?: boolean;
}

const HEAD = `# pvescaler config. Replace the values of lines marked CHANGE; the other lines work unchanged.
# Check it:  pvescaler config validate --config <this file>
# Every key: docs/reference/config.md, or pvescaler config init --full
apiVersion: pvescaler.dev/v1alpha1
`;

const GRPC = `
grpc:
  listen: ":50051"
  tls:                                        # CHANGE: your certificates
    cert: /etc/pvescaler/tls/tls.crt
    key: /etc/pvescaler/tls/tls.key
    clientCa: /etc/pvescaler/tls/ca.crt
    allow: [cluster-autoscaler]               # names in the client certificate
`;

const BODY = `
cluster:
  name: homelab                               # CHANGE: added as a tag to each VM

proxmox:
  lab:                                        # name of the region, part of provider ids
    endpoints: ["https://pve1.example:8006"]  # CHANGE: one or more hosts of the cluster
    token:
      id: "pvescaler@pve!server"              # CHANGE: user@realm!name
      secretFile: /etc/pvescaler/token        # CHANGE: file with the secret of the token, mode 600
    tls:
      caFile: /etc/pvescaler/pve-root-ca.pem  # CHANGE: /etc/pve/pve-root-ca.pem of a host
    vmIds: 20000-20999                        # ids reserved for machines
    storage:
      images: local                           # needs content type 'import' (Proxmox VE 8.4)
      seeds: local                            # needs content type 'iso'
      disks: local-lvm                        # CHANGE: storage for VM disks

images:
  noble:
    url: https://cloud-images.ubuntu.com/noble/current/noble-server-cloudimg-amd64.img
    checksumUrl: https://cloud-images.ubuntu.com/noble/current/SHA256SUMS

sizes:
  medium: { cpu: 2, memory: 4Gi, disk: 40Gi }

join:
  k3s:
    server: https://k3s.example:6443          # CHANGE: your k3s server
    version: v1.34.4+k3s1                     # CHANGE: the version of the server
    token: auto                               # a short-lived token per machine

pools:
  - name: workers
    size: medium
    limits: { min: 0, max: 3 }
    network:
      interfaces: [{ bridge: vmbr0 }]         # CHANGE: your bridge
      ip: dhcp
`;

export function starterConfig(options: StarterOptions = {}): string {
  const mode = options.mode ?? 'externalgrpc';
  const text = `${HEAD}mode: ${mode}\n${mode === 'externalgrpc' ? GRPC : ''}${BODY}`;
  return options.full === true ? `${text}\n${renderAllKeysAsComments()}` : text;
}
