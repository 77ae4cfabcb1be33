// SPDX-License-Identifier: Apache-2.0
// Kubeconfig files and service accounts are read by the official client, which knows every way of signing in. It
// is large, so it is loaded when the first connection is made, and used for nothing else.
import type { KubeConfig, Cluster as KubernetesServer } from '@kubernetes/client-node';
import { InvalidConfig, Unauthorized } from '../../ports/errors.ts';
import type { Connection, ConnectionSource, Credentials } from './connection.ts';

type Pem = string | Buffer | readonly (string | Buffer)[] | undefined;

/** What the official client fills in for a request. */
interface SignedOptions {
  headers: Record<string, string>;
  auth?: string | null;
  ca?: Pem;
  cert?: Pem;
  key?: Pem;
}

export async function loadConnection(source: ConnectionSource): Promise<Connection> {
  const { KubeConfig: Loader } = await import('@kubernetes/client-node');
  const config = new Loader();
  try {
    read(config, source);
  } catch (error) {
    throw unreadable(source, 'it cannot be read', error);
  }
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw unreadable(source, 'its current context names no cluster');
  const problem = problemOf(cluster);
  if (problem !== undefined) throw unreadable(source, problem);
  return {
    server: cluster.server,
    caPem: textOf((await signed(config)).ca),
    isInsecure: cluster.skipTLSVerify,
    serverName: cluster.tlsServerName,
    credentials: async () => credentialsOf(await signed(config)),
  };
}

function problemOf({ server, proxyUrl, skipTLSVerify }: KubernetesServer): string | undefined {
  if (!/^https?:\/\//.test(server)) return 'its cluster has no server';
  if (server.startsWith('http:') && !skipTLSVerify) {
    return 'its server is plain HTTP; set insecure-skip-tls-verify if that is meant';
  }
  return (proxyUrl ?? '') === '' ? undefined : 'proxy-url is not supported';
}

function read(config: KubeConfig, source: ConnectionSource): void {
  if (source.kind === 'in-cluster') return config.loadFromCluster();
  config.loadFromFile(source.path);
  if (source.context === undefined) return;
  if (config.getContextObject(source.context) === null) {
    throw new RangeError(`there is no context '${source.context}'`);
  }
  config.setCurrentContext(source.context);
}

async function signed(config: KubeConfig): Promise<SignedOptions> {
  const options: SignedOptions = { headers: {} };
  try {
    // The client's type is that of a request of Node's; it fills in the fields above and an agent.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion, typescript/no-unsafe-argument -- see above
    await config.applyToHTTPSOptions(options as Parameters<KubeConfig['applyToHTTPSOptions']>[0]);
  } catch (error) {
    // What a plugin prints may be anything: it is kept as the cause, not in the message.
    throw new Unauthorized('CREDENTIALS_REFUSED', 'the credentials cannot be had', {
      cause: error,
      hint: "Run the kubeconfig's exec plugin by hand, or check that its token and certificate files are readable.",
      facts: { requestSent: false },
    });
  }
  return options;
}

function credentialsOf({ headers, auth, cert, key }: SignedOptions): Credentials {
  const [certPem, keyPem] = [textOf(cert), textOf(key)];
  const basic = auth ? `Basic ${Buffer.from(auth).toString('base64')}` : undefined;
  const authorization = headers['Authorization']?.trim() ?? basic;
  return {
    ...(authorization !== undefined && { authorization }),
    ...(certPem !== undefined && keyPem !== undefined && { client: { certPem, keyPem } }),
  };
}

function textOf(pem: Pem): string | undefined {
  if (pem === undefined || typeof pem === 'string') return pem;
  return Buffer.isBuffer(pem) ? pem.toString('utf8') : pem.map((one) => String(one)).join('\n');
}

function unreadable(source: ConnectionSource, problem: string, cause?: unknown): InvalidConfig {
  const what =
    source.kind === 'in-cluster' ? 'the service account of this pod' : `kubeconfig ${source.path}`;
  const detail = cause instanceof Error ? ` (${cause.message})` : '';
  return new InvalidConfig('CONFIG_UNREADABLE', `${what}: ${problem}${detail}`, {
    cause,
    hint: 'Name a kubeconfig by --kubeconfig or cluster.kubeconfig, or run in a pod with a service account.',
  });
}
