// SPDX-License-Identifier: Apache-2.0
// The objects of `kubeadm init` that a real `kubeadm join` reads besides cluster-info.
import { type Api, NODE_TOKEN_GROUPS } from '../e2e/controlplane/index.ts';

const NAMESPACE = 'kube-system';
const RBAC = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}`;
const API_GROUP = 'rbac.authorization.k8s.io';

export async function createKubeadmObjects(api: Api, server: string): Promise<void> {
  const { host } = new URL(server);
  await createConfigMap(api, 'kubeadm-config', {
    ClusterConfiguration: JSON.stringify({
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'ClusterConfiguration',
      kubernetesVersion: 'v1.36.2',
      controlPlaneEndpoint: host,
    }),
  });
  await createConfigMap(api, 'kubelet-config', {
    kubelet: JSON.stringify({
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      rotateCertificates: true,
      authentication: {
        anonymous: { enabled: false },
        webhook: { enabled: true },
        x509: { clientCAFile: '/etc/kubernetes/pki/ca.crt' },
      },
      authorization: { mode: 'Webhook' },
      staticPodPath: '/etc/kubernetes/manifests',
    }),
  });
  const name = 'kubeadm:node-configs';
  await api.create(`${RBAC}/roles`, {
    metadata: { name },
    rules: [
      {
        apiGroups: [''],
        resources: ['configmaps'],
        resourceNames: ['kubeadm-config', 'kubelet-config', 'kube-proxy'],
        verbs: ['get'],
      },
    ],
  });
  await api.create(`${RBAC}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: API_GROUP, kind: 'Role', name },
    subjects: [...NODE_TOKEN_GROUPS, 'system:nodes'].map((group) => ({
      apiGroup: API_GROUP,
      kind: 'Group',
      name: group,
    })),
  });
}

async function createConfigMap(api: Api, name: string, data: Readonly<Record<string, string>>) {
  await api.create(`/api/v1/namespaces/${NAMESPACE}/configmaps`, { metadata: { name }, data });
}
