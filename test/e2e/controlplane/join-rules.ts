// SPDX-License-Identifier: Apache-2.0
// The objects that `kubeadm init` and k3s create so that a node can join with a bootstrap token: the right to request a
// certificate, its automatic approval, and the public cluster-info with the CA.
import type { Api } from './api.ts';
import { kubeconfigText } from './settings.ts';

/** Groups of the users that authenticate with a bootstrap token. */
export const NODE_TOKEN_GROUPS = [
  'system:bootstrappers:kubeadm:default-node-token',
  'system:bootstrappers:k3s:default-node-token',
  'system:bootstrappers:rke2:default-node-token',
] as const;

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const CERTIFICATES = 'system:certificates.k8s.io:certificatesigningrequests';

const group = (name: string) => ({
  apiGroup: 'rbac.authorization.k8s.io',
  kind: 'Group',
  name,
});

async function bind(api: Api, role: string, groups: readonly string[]): Promise<void> {
  await api.create(`${RBAC}/clusterrolebindings`, {
    metadata: { name: `test:${role.replaceAll(/[^a-z]+/g, '-')}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: groups.map(group),
  });
}

/** kubeadm checks whether a Node of its name exists before it requests a certificate. */
async function allowReadingNodes(api: Api): Promise<void> {
  await api.create(`${RBAC}/clusterroles`, {
    metadata: { name: 'kubeadm:get-nodes' },
    rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }],
  });
  await bind(api, 'kubeadm:get-nodes', NODE_TOKEN_GROUPS);
}

/** The bootstrap signer adds a signature per token, which the joining node verifies. */
async function publishClusterInfo(api: Api, caPem: string, server: string): Promise<void> {
  const { clusters, ...rest } = JSON.parse(kubeconfigText(server, caPem, { token: '' })) as Record<
    string,
    unknown[]
  >;
  const [cluster] = clusters ?? [];
  const kubeconfig = JSON.stringify({
    apiVersion: rest['apiVersion'],
    kind: rest['kind'],
    clusters: [{ ...(cluster as object), name: '' }],
  });
  const [namespace, name] = ['kube-public', 'cluster-info'];
  await api.create(`/api/v1/namespaces/${namespace}/configmaps`, {
    metadata: { name, namespace },
    data: { kubeconfig },
  });
  const role = 'kubeadm:bootstrap-signer-clusterinfo';
  await api.create(`${RBAC}/namespaces/${namespace}/roles`, {
    metadata: { name: role },
    rules: [{ apiGroups: [''], resources: ['configmaps'], resourceNames: [name], verbs: ['get'] }],
  });
  await api.create(`${RBAC}/namespaces/${namespace}/rolebindings`, {
    metadata: { name: role },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: role },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'system:anonymous' }],
  });
}

export async function installJoinRules(api: Api, caPem: string, server: string): Promise<void> {
  await Promise.all([
    bind(api, 'system:node-bootstrapper', NODE_TOKEN_GROUPS),
    bind(api, `${CERTIFICATES}:nodeclient`, NODE_TOKEN_GROUPS),
    bind(api, `${CERTIFICATES}:selfnodeclient`, ['system:nodes']),
    allowReadingNodes(api),
    publishClusterInfo(api, caPem, server),
  ]);
}
