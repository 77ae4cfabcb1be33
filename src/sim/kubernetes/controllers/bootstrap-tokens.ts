// SPDX-License-Identifier: Apache-2.0
// Signs the public cluster-info for every bootstrap token, and deletes expired tokens.
import { createHmac } from 'node:crypto';
import { readBootstrapToken } from '../http/authentication.ts';
import { isEqualJson, type JsonObject, objectField, textField } from '../storage/objects.ts';
import { CONFIG_MAPS, SECRETS } from '../storage/resources.ts';
import { addressOf, type Controller, type ControllerContext } from './controller.ts';

export const bootstrapTokenController: Controller = {
  name: 'bootstrap-signer-controller',
  watches: [SECRETS, CONFIG_MAPS],
  sync(cluster) {
    const now = cluster.clock.now();
    let next: number | undefined;
    const signatures: [string, string][] = [];
    cluster.forEach(cluster.list(SECRETS, 'kube-system'), (secret) => {
      const token = readBootstrapToken(secret);
      if (token === undefined) return;
      if (token.expiresAt <= now) {
        cluster.delete(SECRETS, secret);
        return;
      }
      const leftMs = token.expiresAt - now;
      const dueAt = cluster.clock.monotonic() + leftMs;
      if (Number.isFinite(leftMs)) next = Math.min(next ?? dueAt, dueAt);
      if (token.usages.includes('signing')) signatures.push([token.id, token.secret]);
    });
    signClusterInfo(cluster, signatures);
    return next;
  },
};

function signClusterInfo(
  cluster: ControllerContext,
  tokens: readonly (readonly [id: string, secret: string])[],
): void {
  const info = cluster.find(CONFIG_MAPS, 'kube-public', 'cluster-info');
  if (info === undefined) return;
  const kubeconfig = textField(objectField(info, 'data'), 'kubeconfig');
  const data: JsonObject = {
    kubeconfig,
    ...Object.fromEntries(
      tokens.map(([id, secret]) => [`jws-kubeconfig-${id}`, sign(kubeconfig, id, secret)]),
    ),
  };
  if (isEqualJson(data, info['data'])) return;
  cluster.storage.store.replace(addressOf(CONFIG_MAPS, info), { ...info, data });
}

/** A detached JWS: header and signature without the payload. */
function sign(payload: string, id: string, secret: string): string {
  const header = Buffer.from(JSON.stringify({ alg: 'HS256', kid: id })).toString('base64url');
  const body = `${header}.${Buffer.from(payload).toString('base64url')}`;
  return `${header}..${createHmac('sha256', secret).update(body).digest('base64url')}`;
}
