// SPDX-License-Identifier: Apache-2.0
// The join of one machine with its secret. A bootstrap token is made when it is about to be sent, for this machine
// alone, and kept nowhere but in memory: after a crash another one is made, and the first expires unused.
import { createHash, X509Certificate } from 'node:crypto';
import type { JoinInput } from '../../bootstrap/index.ts';
import { BOOTSTRAP_GROUPS } from '../../model/bootstrap-groups.ts';
import type { Cluster } from '../../ports/cluster.ts';
import { InvalidConfig } from '../../ports/errors.ts';
import type { Job } from '../lifecycle/job.ts';
import type { JoinSettings } from './join-settings.ts';

type Joining = Exclude<JoinSettings, { readonly kind: 'none' }>;

/** Stands where a token would, in documents that carry none. */
const NO_TOKEN = 'none00.0000000000000000';

/** For the seed. A join through the guest agent keeps its secrets out of it. */
export function joinOfSeed(job: Job, join: JoinSettings): Promise<JoinInput> {
  if (join.kind === 'none') return Promise.resolve(join);
  return join.via === 'agent' ? withToken(job, join, NO_TOKEN) : joinOfAgent(job, join);
}

export async function joinOfAgent(job: Job, join: JoinSettings): Promise<JoinInput> {
  return join.kind === 'none' ? join : withToken(job, join, await tokenOf(job, join));
}

async function withToken(job: Job, join: Joining, token: string): Promise<JoinInput> {
  if (join.kind !== 'kubeadm') return { ...join, token };
  const { caCertHashes } = join;
  return {
    ...join,
    token,
    caCertHashes: caCertHashes.length > 0 ? caCertHashes : caHashes(await caOf(job)),
  };
}

async function tokenOf(job: Job, join: Joining): Promise<string> {
  if (join.token.kind === 'static') return join.token.read();
  const token = await mintedToken(job, join, join.token.ttlMs);
  if (join.kind !== 'k3s' && join.kind !== 'rke2') return token;
  const sum = createHash('sha256')
    .update(await caOf(job))
    .digest('hex');
  return `K10${sum}::${token}`;
}

/** A token with half of its life before it serves a second try as well. */
async function mintedToken(job: Job, { kind }: Joining, ttlMs: number): Promise<string> {
  const { tokens } = job.turn.memory;
  const minted = tokens.get(job.id);
  if (minted !== undefined && minted.expiresAt - job.turn.now > ttlMs / 2) return minted.token;
  const made = await clusterOf(job).createBootstrapToken(
    {
      description: `pvescaler: ${job.placement.name}`,
      lifetimeMs: ttlMs,
      groups: [BOOTSTRAP_GROUPS[kind === 'custom' ? 'kubeadm' : kind]],
      usages: kind === 'kubeadm' ? ['authentication', 'signing'] : ['authentication'],
    },
    job.turn.acting,
  );
  tokens.set(job.id, made);
  return made.token;
}

async function caOf(job: Job): Promise<string> {
  return clusterOf(job).serverCa(job.turn.reading);
}

/** What kubeadm pins: the public key of each CA. */
function caHashes(pem: string): readonly string[] {
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g);
  return (certificates ?? []).map((text) => {
    const key = new X509Certificate(text).publicKey.export({ type: 'spki', format: 'der' });
    return `sha256:${createHash('sha256').update(key).digest('hex')}`;
  });
}

function clusterOf(job: Job): Cluster {
  const { cluster } = job.turn;
  if (cluster !== undefined) return cluster;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    `pool ${job.machine.pool} joins its machines to a cluster, and there is no access to one`,
    { hint: 'Name a kubeconfig by cluster.kubeconfig or --kubeconfig, or set join: none.' },
  );
}
