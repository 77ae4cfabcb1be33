// SPDX-License-Identifier: Apache-2.0
// The node's certificates on disk, at the paths of each distribution. A later boot needs no token.

import type { GuestFiles } from '../system/files.ts';
import { asList, asRecord, asText, parseYaml } from '../untyped-values.ts';

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

export const KUBEADM_IDENTITY_PATHS: IdentityPaths = {
  kubeconfig: '/etc/kubernetes/kubelet.conf',
  ca: '/etc/kubernetes/pki/ca.crt',
  cert: '/var/lib/kubelet/pki/kubelet-client-current.pem',
  key: '/var/lib/kubelet/pki/kubelet-client-current.pem',
};

export function rancherIdentityPaths(
  distribution: 'k3s' | 'rke2',
  dataDir?: string,
): IdentityPaths {
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

/** Undefined when one of the files is missing. */
export function readIdentity(files: GuestFiles, paths: IdentityPaths): NodeIdentity | undefined {
  const kubeconfig = asRecord(parseYaml(files.read(paths.kubeconfig) ?? '').value);
  const cluster = asRecord(asRecord(asList(kubeconfig['clusters'])[0])['cluster']);
  const user = asText(asRecord(asList(kubeconfig['users'])[0])['name']) ?? '';
  const server = asText(cluster['server']);
  const [caPem, certPem, keyPem] = [paths.ca, paths.cert, paths.key].map((path) =>
    files.read(path),
  );
  if (server === undefined || caPem === undefined) return undefined;
  if (certPem === undefined || keyPem === undefined) return undefined;
  return { nodeName: user.replace(/^system:node:/, ''), server, caPem, certPem, keyPem };
}
