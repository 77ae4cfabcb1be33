// SPDX-License-Identifier: Apache-2.0
// The groups that nodes authenticate as while they join with a bootstrap token.

/**
 * Each distribution grants the right to request a node certificate to its own group. A token of another group
 * authenticates, but the kubelet's certificate request is never approved.
 */
export const BOOTSTRAP_GROUPS = {
  kubeadm: 'system:bootstrappers:kubeadm:default-node-token',
  k3s: 'system:bootstrappers:k3s:default-node-token',
  rke2: 'system:bootstrappers:rke2:default-node-token',
} as const;
