// SPDX-License-Identifier: Apache-2.0
// Approves and signs the certificate requests of joining nodes.
import { BOOTSTRAPPERS } from '../http/authentication.ts';
import {
  formatTime,
  listField,
  type SimObject,
  specOf,
  statusOf,
  textField,
  textList,
} from '../storage/objects.ts';
import { CERTIFICATE_REQUESTS } from '../storage/resources.ts';
import type { ClusterAuthority, Controller, ControllerContext } from './controller.ts';

const NODE_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';

export function createCertificateController(authority: ClusterAuthority): Controller {
  return {
    name: 'csrsigning-controller',
    watches: [CERTIFICATE_REQUESTS],
    sync(cluster) {
      cluster.forEach(cluster.list(CERTIFICATE_REQUESTS), (request) => {
        if (textField(specOf(request), 'signerName') !== NODE_SIGNER) return;
        const approved = mayApprove(request) ? approve(cluster, request) : request;
        if (isApproved(approved)) sign(cluster, approved, authority);
      });
      return undefined;
    },
  };
}

function isApproved(request: SimObject): boolean {
  return listField(statusOf(request), 'conditions').some(({ type }) => type === 'Approved');
}

/** Requests of bootstrap tokens, and of nodes for themselves. */
function mayApprove(request: SimObject): boolean {
  const groups = textList(specOf(request), 'groups');
  const isDecided = listField(statusOf(request), 'conditions').length > 0;
  return !isDecided && (groups.includes(BOOTSTRAPPERS) || groups.includes('system:nodes'));
}

function approve(cluster: ControllerContext, request: SimObject): SimObject {
  const now = formatTime(cluster.clock.now());
  const condition = {
    type: 'Approved',
    status: 'True',
    reason: 'AutoApproved',
    message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
    lastUpdateTime: now,
    lastTransitionTime: now,
  };
  return cluster.updateStatus(CERTIFICATE_REQUESTS, request, { conditions: [condition] });
}

function sign(cluster: ControllerContext, request: SimObject, authority: ClusterAuthority): void {
  if (textField(statusOf(request), 'certificate') !== '') return;
  const pem = Buffer.from(textField(specOf(request), 'request'), 'base64').toString('utf8');
  const certificate = Buffer.from(authority.sign(pem)).toString('base64');
  cluster.updateStatus(CERTIFICATE_REQUESTS, request, { certificate });
}
