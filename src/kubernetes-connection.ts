// SPDX-License-Identifier: Apache-2.0
// The part of the composition root that connects to Kubernetes, in the main thread and in the gRPC worker thread.
import { homedir } from 'node:os';
import { delimiter } from 'node:path';
import type { Config } from './config/index.ts';
import type { ConnectionSource, OpenTransport } from './kubernetes/index.ts';
import type { Store } from './ports/store.ts';
import type { KubernetesStoreOptions } from './setup/index.ts';
import {
  openHttpTransport,
  runProgram,
  systemClock,
  systemFiles,
  systemRandom,
} from './system/index.ts';

export async function findKubernetes(
  cluster: Pick<Config['cluster'], 'kubeconfigPath' | 'context'>,
): Promise<ConnectionSource | undefined> {
  const { findConnectionSource } = await import('./kubernetes/index.ts');
  return findConnectionSource({
    kubeconfigPath: cluster.kubeconfigPath,
    context: cluster.context,
    environment: process.env,
    homeFolder: homedir(),
    pathDelimiter: delimiter,
    fileExists: (path) => systemFiles.exists(path),
  });
}

export const openKubernetesTransport: OpenTransport = ({ caPem, isInsecure, serverName, client }) =>
  openHttpTransport({
    unreachable: 'KUBERNETES_UNREACHABLE',
    tls: isInsecure
      ? { kind: 'insecure', ...(client !== undefined && { client }) }
      : {
          kind: 'verify',
          ...(caPem !== undefined && { caPem }),
          ...(client !== undefined && { client }),
          ...(serverName !== undefined && { serverName }),
        },
  });

export async function openStoreInKubernetes(
  cluster: Pick<Config['cluster'], 'kubeconfigPath' | 'context'>,
  options: KubernetesStoreOptions,
): Promise<Store | undefined> {
  const source = await findKubernetes(cluster);
  if (source === undefined) return undefined;
  const { openKubernetesStore } = await import('./kubernetes/index.ts');
  return openKubernetesStore({
    ...options,
    source,
    runProgram,
    openTransport: openKubernetesTransport,
    clock: systemClock,
    random: systemRandom,
  });
}
