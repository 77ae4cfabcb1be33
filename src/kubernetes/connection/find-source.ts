// SPDX-License-Identifier: Apache-2.0
import type { ConnectionSource } from './connection.ts';

const SERVICE_ACCOUNT_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

export interface FindSourceOptions {
  readonly kubeconfigPath: string | undefined;
  readonly context: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeFolder: string;
  /** Separates the paths in KUBECONFIG. */
  readonly pathDelimiter: string;
  readonly fileExists: (path: string) => Promise<boolean>;
}

/** The configured kubeconfig; else the pod's service account; else the kubeconfig that kubectl uses by default. */
export async function findConnectionSource({
  kubeconfigPath,
  context,
  environment,
  homeFolder,
  pathDelimiter,
  fileExists,
}: FindSourceOptions): Promise<ConnectionSource | undefined> {
  if (kubeconfigPath !== undefined) return { kind: 'kubeconfig', path: kubeconfigPath, context };
  const isPod = environment['KUBERNETES_SERVICE_HOST'] !== undefined;
  if (isPod && (await fileExists(SERVICE_ACCOUNT_TOKEN))) return { kind: 'in-cluster' };
  const named = (environment['KUBECONFIG'] ?? '')
    .split(pathDelimiter)
    .filter((path) => path !== '');
  for (const path of named.length > 0 ? named : [`${homeFolder}/.kube/config`]) {
    if (await fileExists(path)) return { kind: 'kubeconfig', path, context };
  }
  // Not "no Kubernetes": without it, machines are deleted without a drain. Reading this file fails with its name.
  const [path] = named;
  return path === undefined ? undefined : { kind: 'kubeconfig', path, context };
}
