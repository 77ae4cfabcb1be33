// SPDX-License-Identifier: Apache-2.0
// A node's certificates on its disk: where each distribution keeps them, so that a second boot needs no token.

import { listOf, parseYaml, recordOf, textOf } from '../plain-values.ts';
import type { GuestFiles } from '../system/files.ts';

export interface NodeIdentity {
  readonly nodeName: string;
  readonly server: string;
  readonly caPem: string;
  readonly certPem: string;
  readonly keyPem: string;
}

export interface IdentityPaths {
  readonly kubeconfig: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export const KUBEADM_IDENTITY: IdentityPaths = {
  kubeconfig: '/etc/kubernetes/kubelet.conf',
  ca: '/etc/kubernetes/pki/ca.crt',
  cert: '/var/lib/kubelet/pki/kubelet-client-current.pem',
  key: '/var/lib/kubelet/pki/kubelet-client-current.pem',
};

export function rancherIdentity(distribution: 'k3s' | 'rke2', dataDir?: string): IdentityPaths {
  const folder = `${dataDir ?? `/var/lib/rancher/${distribution}`}/agent`;
  return {
    kubeconfig: `${folder}/kubelet.kubeconfig`,
    ca: `${folder}/server-ca.crt`,
    cert: `${folder}/client-kubelet.crt`,
    key: `${folder}/client-kubelet.key`,
  };
}

export function writeIdentity(
  files: GuestFiles,
  paths: IdentityPaths,
  identity: NodeIdentity,
): void {
  const put = (path: string, text: string) => {
    files.makeDirectory(path.replace(/\/[^/]*$/, ''));
    files.write(path, text, { mode: '0600' });
  };
  put(paths.ca, identity.caPem);
  put(paths.cert, identity.certPem);
  put(paths.key, paths.key === paths.cert ? identity.certPem + identity.keyPem : identity.keyPem);
  // JSON is YAML.
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'default',
    clusters: [
      {
        name: 'default',
        cluster: { server: identity.server, 'certificate-authority': paths.ca },
      },
    ],
    contexts: [
      {
        name: 'default',
        context: { cluster: 'default', user: `system:node:${identity.nodeName}` },
      },
    ],
    users: [
      {
        name: `system:node:${identity.nodeName}`,
        user: { 'client-certificate': paths.cert, 'client-key': paths.key },
      },
    ],
  };
  put(paths.kubeconfig, `${JSON.stringify(kubeconfig, undefined, 2)}\n`);
}

/** Undefined when a file is missing. */
export function readIdentity(files: GuestFiles, paths: IdentityPaths): NodeIdentity | undefined {
  const kubeconfig = recordOf(parseYaml(files.read(paths.kubeconfig) ?? '').value);
  const cluster = recordOf(recordOf(listOf(kubeconfig['clusters'])[0])['cluster']);
  const user = textOf(recordOf(listOf(kubeconfig['users'])[0])['name']) ?? '';
  const server = textOf(cluster['server']);
  const [caPem, certPem, keyPem] = [paths.ca, paths.cert, paths.key].map((path) =>
    files.read(path),
  );
  if (server === undefined || caPem === undefined) return undefined;
  if (certPem === undefined || keyPem === undefined) return undefined;
  return { nodeName: user.replace(/^system:node:/, ''), server, caPem, certPem, keyPem };
}
