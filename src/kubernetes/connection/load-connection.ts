// SPDX-License-Identifier: Apache-2.0
// The official client reads kubeconfig files and service accounts, because it supports all their formats. It is large,
// so it is loaded with the first connection and used for nothing else.
import type { KubeConfig, Cluster as KubernetesServer } from '@kubernetes/client-node';
import { InvalidConfig } from '../../ports/errors.ts';
import type { ClusterConnection, ConnectionSource } from './connection.ts';
import { CredentialProvider, type CredentialProviderOptions } from './credential-provider.ts';

type LoadOptions = Omit<CredentialProviderOptions, 'load'>;

export async function loadConnection(
  source: ConnectionSource,
  options: LoadOptions,
): Promise<ClusterConnection> {
  const { KubeConfig: Loader } = await import('./kubeconfig-reader.ts');
  const load = () => {
    const config = new Loader();
    try {
      readSource(config, source);
    } catch (error) {
      throw unreadable(source, 'cannot be read', error);
    }
    return config;
  };
  const cluster = load().getCurrentCluster();
  if (cluster === null) throw unreadable(source, 'the current context names no cluster');
  const problem = findProblem(cluster);
  if (problem !== undefined) throw unreadable(source, problem);
  const provider = new CredentialProvider({ ...options, load });
  return {
    server: cluster.server,
    caPem: await provider.caPem(),
    isInsecure: cluster.skipTLSVerify,
    serverName: cluster.tlsServerName,
    credentials: () => provider.credentials(),
    renew: (refused) => provider.renew(refused),
    close: () => provider.close(),
  };
}

function findProblem({ server, proxyUrl, skipTLSVerify }: KubernetesServer): string | undefined {
  if (!/^https?:\/\//.test(server)) return 'the cluster has no server URL';
  if (server.startsWith('http:') && !skipTLSVerify) {
    return 'the server URL is plain HTTP; set insecure-skip-tls-verify to allow this';
  }
  return (proxyUrl ?? '') === '' ? undefined : 'proxy-url is not supported';
}

function readSource(config: KubeConfig, source: ConnectionSource): void {
  if (source.kind === 'in-cluster') return config.loadFromCluster(source.root);
  config.loadFromFile(source.path);
  if (source.context === undefined) return;
  if (config.getContextObject(source.context) === null) {
    throw new RangeError(`context '${source.context}' does not exist`);
  }
  config.setCurrentContext(source.context);
}

function unreadable(source: ConnectionSource, problem: string, cause?: unknown): InvalidConfig {
  const what =
    source.kind === 'in-cluster' ? 'the service account of this pod' : `kubeconfig ${source.path}`;
  const detail = cause instanceof Error ? ` (${cause.message})` : '';
  return new InvalidConfig('CONFIG_UNREADABLE', `${what}: ${problem}${detail}`, {
    cause,
    hint: 'Set --kubeconfig, cluster.kubeconfig or KUBECONFIG to a valid kubeconfig, unset KUBECONFIG if no cluster is wanted, or run in a pod with a service account.',
  });
}
