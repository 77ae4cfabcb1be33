// SPDX-License-Identifier: Apache-2.0
// Where machines join, and the static tokens that they join with.
import { createHash, X509Certificate } from 'node:crypto';
import type { Config } from '../config/index.ts';
import type { ClusterInspector } from '../ports/inspection.ts';
import { type Check, failure, failureOf, type Outcome, ok, skipped, warning } from './check.ts';
import type { DoctorContext } from './context.ts';
import { KUBERNETES_GROUP } from './kubernetes.ts';

type JoinKind = 'k3s' | 'rke2' | 'kubeadm';
const KINDS: readonly JoinKind[] = ['k3s', 'rke2', 'kubeadm'];
const BOOTSTRAP_TOKEN = /^[a-z0-9]{6}\.[a-z0-9]{16}$/;

interface JoinTarget {
  readonly kind: JoinKind;
  readonly server: string;
}

interface JoinContext {
  readonly context: DoctorContext;
  readonly config: Config;
  readonly inspector: ClusterInspector | undefined;
}

export function joinChecks(join: JoinContext): readonly Check[] {
  return listTargets(join).flatMap((target) => {
    const subject = `${target.kind} at ${target.server}`;
    return [
      {
        name: 'join-endpoint',
        group: KUBERNETES_GROUP,
        subject,
        run: (signal) => judgeEndpoint(join, target, signal),
      },
      {
        name: 'join-token',
        group: KUBERNETES_GROUP,
        subject: target.kind,
        run: (signal) => judgeToken(join, target, signal),
      },
    ] satisfies Check[];
  });
}

function listTargets({ config, inspector }: JoinContext): readonly JoinTarget[] {
  return KINDS.flatMap((kind) => {
    const recipe = config.join[kind];
    const server = recipe?.server ?? inspector?.server;
    const isUsed = config.pools.some(({ join }) => join === kind);
    return isUsed && server !== undefined ? [{ kind, server }] : [];
  });
}

async function judgeEndpoint(
  join: JoinContext,
  target: JoinTarget,
  signal: AbortSignal,
): Promise<Outcome> {
  const answer = await readCa(join, target, signal).catch(failureOf);
  if ('status' in answer) {
    return answer.status === 'failure'
      ? failure(
          answer.cause,
          `Check join.${target.kind}.server: machines must reach it too, from their own network.`,
        )
      : answer;
  }
  const hashes = join.config.join.kubeadm?.caCertHashes ?? [];
  if (target.kind === 'kubeadm' && hashes.length > 0 && !hashes.includes(answer.publicKeyHash)) {
    return failure(
      `the CA of ${target.server} has the hash ${answer.publicKeyHash}, which is not in join.kubeadm.caCertHashes`,
      'Correct join.kubeadm.caCertHashes, or remove it: then the hash is read from the cluster.',
    );
  }
  return ok('answers, with the CA that machines will trust');
}

interface ServerCa {
  readonly pem: string;
  /** As k3s puts it into tokens. */
  readonly bundleHash: string;
  /** As `kubeadm join` pins it. */
  readonly publicKeyHash: string;
}

/** Read as a joining machine does: the server is not verified yet, and nothing secret is sent. */
async function readCa(
  { context }: JoinContext,
  { kind, server }: JoinTarget,
  signal: AbortSignal,
): Promise<ServerCa> {
  const path =
    kind === 'kubeadm' ? '/api/v1/namespaces/kube-public/configmaps/cluster-info' : '/cacerts';
  const url = new URL(path, server).href;
  const { status, body } = await context.adapters.probe(url, { signal });
  if (status !== 200) throw new Error(`${url} answers with status ${status}`);
  const pem = kind === 'kubeadm' ? readClusterInfo(body) : body;
  const spki = new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' });
  return { pem, bundleHash: sha256(pem), publicKeyHash: `sha256:${sha256(spki)}` };
}

function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

/** The ConfigMap holds a kubeconfig, in which the CA is the only certificate. */
function readClusterInfo(body: string): string {
  const [, encoded = ''] =
    /certificate-authority-data(?:\\?["'])?:\s*(?:\\?["'])?([A-Za-z0-9+/=]+)/.exec(body) ?? [];
  return Buffer.from(encoded, 'base64').toString('utf8');
}

async function judgeToken(
  join: JoinContext,
  target: JoinTarget,
  signal: AbortSignal,
): Promise<Outcome> {
  const { config, context } = join;
  const token = config.join[target.kind]?.token;
  if (token?.kind !== 'static') return ok('a token for each machine, valid for at most an hour');
  const { value } = await context.adapters.readSecret(token.source, config.cluster);
  const ca = await readCa(join, target, signal).catch(() => undefined);
  if (ca === undefined) return skipped('the server cannot be read');
  return target.kind === 'kubeadm'
    ? judgeBootstrapToken(join, { ...target, token: value, ca, signal })
    : judgeAgentToken(join, { ...target, token: value, ca, signal });
}

interface PresentedToken extends JoinTarget {
  readonly token: string;
  readonly ca: ServerCa;
  readonly signal: AbortSignal;
}

function judgeBootstrapToken(join: JoinContext, presented: PresentedToken): Promise<Outcome> {
  const { token, ca } = presented;
  const hashes = join.config.join.kubeadm?.caCertHashes ?? [];
  if (hashes.length > 0 && !hashes.includes(ca.publicKeyHash)) {
    return Promise.resolve(skipped('the server has not the CA of join.kubeadm.caCertHashes'));
  }
  if (!BOOTSTRAP_TOKEN.test(token)) {
    return Promise.resolve(
      failure(
        'the token has not the form of a bootstrap token, abcdef.0123456789abcdef',
        'Create one with kubeadm token create, or set token: auto.',
      ),
    );
  }
  return present(join, presented, { path: '/api', authorization: `Bearer ${token}` });
}

async function judgeAgentToken(join: JoinContext, presented: PresentedToken): Promise<Outcome> {
  const { kind, token, ca } = presented;
  const [, hash, secret = token] = /^K10([0-9a-f]{64})::(.+)$/.exec(token) ?? [];
  const fix = `Use the agent token of the server (/var/lib/rancher/${kind}/server/agent-token), or set token: auto.`;
  if (hash !== undefined && hash !== ca.bundleHash) {
    return failure('the token belongs to another cluster: its CA hash is that of another CA', fix);
  }
  const path = `/v1-${kind}/apiservers`;
  const authorization = BOOTSTRAP_TOKEN.test(secret)
    ? `Bearer ${secret}`
    : `Basic ${Buffer.from(secret.includes(':') ? secret : `node:${secret}`).toString('base64')}`;
  const presentedOutcome = await present(join, presented, { path, authorization });
  if (presentedOutcome.status !== 'ok') return presentedOutcome;
  if (secret.startsWith('server:')) {
    return warning('it is a server token: anyone who reads a seed ISO could add a server', fix);
  }
  return hash === undefined
    ? warning('the token has no CA hash, so a machine joins any server at this address', fix)
    : presentedOutcome;
}

/** Only to a server whose certificate the known CA signed. */
async function present(
  { context }: JoinContext,
  { kind, server, ca, signal }: PresentedToken,
  { path, authorization }: { readonly path: string; readonly authorization: string },
): Promise<Outcome> {
  const url = new URL(path, server).href;
  const { status } = await context.adapters.probe(url, { caPem: ca.pem, authorization, signal });
  if (status !== 401 && status !== 403) return ok('the server accepts it');
  return failure(
    `the server refuses the token (status ${status}): it is wrong or has expired`,
    `Set a valid token in join.${kind}.token, or token: auto.`,
  );
}
