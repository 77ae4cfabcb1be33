// SPDX-License-Identifier: Apache-2.0
// Kubeconfig files and service accounts are read by the official client, which knows their forms. It is large, so it is
// loaded when the first connection is made, and used for nothing else.
import type { KubeConfig, Cluster as KubernetesServer } from '@kubernetes/client-node';
import { InvalidConfig } from '../../ports/errors.ts';
import type { Connection, ConnectionSource } from './connection.ts';
import { Login, type LoginOptions } from './login.ts';

export type LoadOptions = Omit<LoginOptions, 'load'>;

export async function loadConnection(
  source: ConnectionSource,
  options: LoadOptions,
): Promise<Connection> {
  const { KubeConfig: Loader } = await import('@kubernetes/client-node');
  const load = () => {
    const config = new Loader();
    try {
      read(config, source);
    } catch (error) {
      throw unreadable(source, 'it cannot be read', error);
    }
    return config;
  };
  const cluster = load().getCurrentCluster();
  if (cluster === null) throw unreadable(source, 'its current context names no cluster');
  const problem = problemOf(cluster);
  if (problem !== undefined) throw unreadable(source, problem);
  const login = new Login({ ...options, load });
  return {
    server: cluster.server,
    caPem: await login.caPem(),
    isInsecure: cluster.skipTLSVerify,
    serverName: cluster.tlsServerName,
    credentials: () => login.credentials(),
    renew: (refused) => login.renew(refused),
    close: () => login.close(),
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
  if (source.kind === 'in-cluster') return config.loadFromCluster(source.root);
  config.loadFromFile(source.path);
  if (source.context === undefined) return;
  if (config.getContextObject(source.context) === null) {
    throw new RangeError(`there is no context '${source.context}'`);
  }
  config.setCurrentContext(source.context);
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
