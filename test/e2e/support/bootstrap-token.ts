// SPDX-License-Identifier: Apache-2.0
import { systemRandom } from '../../../src/system/index.ts';
import type { Api } from '../controlplane/index.ts';

export interface TokenOptions {
  readonly distribution: 'kubeadm' | 'k3s' | 'rke2';
  readonly lifetimeMs?: number;
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';

function randomLetters(count: number): string {
  return Array.from({ length: count }, () => LETTERS[systemRandom.integer(LETTERS.length)]).join(
    '',
  );
}

/** Creates a token as `kubeadm token create` does: `id.secret`. */
export async function createToken(
  api: Api,
  { distribution, lifetimeMs = 600_000 }: TokenOptions,
): Promise<string> {
  const [id, secret] = [randomLetters(6), randomLetters(16)];
  await api.create('/api/v1/namespaces/kube-system/secrets', {
    metadata: { name: `bootstrap-token-${id}` },
    type: 'bootstrap.kubernetes.io/token',
    stringData: {
      'token-id': id,
      'token-secret': secret,
      expiration: new Date(Date.now() + lifetimeMs).toISOString().replace(/\.\d+Z$/, 'Z'),
      'usage-bootstrap-authentication': 'true',
      'usage-bootstrap-signing': 'true',
      'auth-extra-groups': `system:bootstrappers:${distribution}:default-node-token`,
    },
  });
  return `${id}.${secret}`;
}
