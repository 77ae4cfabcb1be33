// SPDX-License-Identifier: Apache-2.0
// The built `serve` as the Cluster Autoscaler's provider, with certificates from `pvescaler certs` and the rights of the
// manifests.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { type Generation, RpcClient } from '../../../interop/client.ts';
import { pvescaler } from '../../../support/pvescaler.ts';
import { freePorts } from '../../controlplane/free-ports.ts';
import type { ControlPlane } from '../../controlplane/index.ts';
import { accountKubeconfig } from '../manifests.ts';
import {
  type Replica,
  type SimulatedSite,
  type SiteOptions,
  startSite,
  waitUntilReady,
} from '../simulated-site.ts';
import { type AutoscalerOptions, ScriptedAutoscaler } from './scripted-autoscaler.ts';

export interface ProviderSite {
  readonly site: SimulatedSite;
  readonly replica: Replica;
  /** Port of the gRPC server. */
  readonly port: number;
  /** Folder of the certificates. */
  readonly certs: string;
  client(generation: Generation): RpcClient;
  autoscaler(
    generation: Generation,
    groups: readonly string[],
    pace?: Partial<Pick<AutoscalerOptions, 'provisionMs' | 'scanMs'>>,
  ): ScriptedAutoscaler;
  close(): Promise<void>;
}

export interface ProviderOptions
  extends Pick<
    SiteOptions,
    'hosts' | 'guests' | 'onTestFinished' | 'maxMachines' | 'hasFaultProxies' | 'simulator'
  > {
  readonly plane: ControlPlane;
  /** More items of `pools`, after `workers`. */
  readonly pools?: string;
}

export async function startProvider(options: ProviderOptions): Promise<ProviderSite> {
  const { plane, pools = '', ...others } = options;
  const certs = join(plane.folder, 'certs');
  const result = pvescaler(['certs', '--output', certs]);
  if (result.exitCode !== 0) throw new Error(result.err);
  const [port = 0] = await freePorts(1);
  const site = await startSite({
    ...others,
    plane,
    distribution: 'k3s',
    kubeconfig: await accountKubeconfig(plane),
    mode: 'externalgrpc',
    config: `${pools}
grpc:
  listen: "127.0.0.1:${port}"
  tls: { cert: ${certs}/server.crt, key: ${certs}/server.key, clientCa: ${certs}/ca.crt }
`,
  });
  const replica = await site.serve('serve');
  await waitUntilReady(replica);
  const pem = (name: string) => readFileSync(join(certs, name));
  const secure = credentials.createSsl(pem('ca.crt'), pem('client.key'), pem('client.crt'));
  const clients: RpcClient[] = [];
  const client = (generation: Generation) => {
    const one = new RpcClient(`localhost:${port}`, `${generation}.proto`, secure);
    clients.push(one);
    return one;
  };
  return {
    site,
    replica,
    port,
    certs,
    client,
    autoscaler: (generation, groups, pace = {}) =>
      new ScriptedAutoscaler({
        api: plane.api,
        client: client(generation),
        generation,
        groups,
        provisionMs: 600_000,
        scanMs: 200,
        ...pace,
      }),
    close: async () => {
      for (const one of clients) one.close();
      await site.close();
    },
  };
}
