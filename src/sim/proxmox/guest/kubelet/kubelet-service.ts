// SPDX-License-Identifier: Apache-2.0
// The kubelet as a service of a guest: joins once with a token, then runs until it is stopped or the power goes.
import type { GuestSystem } from '../system/system.ts';
import { discover } from './discovery.ts';
import { type IdentityPaths, type NodeIdentity, writeIdentity } from './identity.ts';
import { Kubelet } from './kubelet.ts';
import { obtainCertificate } from './node-certificate.ts';
import { NodeContext } from './node-context.ts';
import type { MachineFacts } from './node-object.ts';
import { JoinRefused, type OpenConnection, ServerApi } from './server-api.ts';
import { argument, type KubeletSettings, labelsOf, taintsOf } from './settings.ts';

export interface JoinOrder {
  readonly settings: KubeletSettings;
  readonly server: string;
  readonly token: string;
  readonly caCertHashes: readonly string[];
  readonly paths: IdentityPaths;
  readonly connect: OpenConnection;
}

/** On real time, like everything that talks to a server outside. */
const RETRY_MS = 1_000;
const PATIENCE_MS = 300_000;

/** Rejects with JoinRefused when this machine will not become a node; its message says why. */
export async function joinCluster(system: GuestSystem, order: JoinOrder): Promise<void> {
  const { settings, connect, paths } = order;
  // A kubelet that would not start asks for no certificate either.
  labelsOf(settings);
  taintsOf(settings);
  const identity = await untilJoined(system, async () => {
    const { signal } = system;
    const { distribution, nodeName } = settings;
    const { server, token, caCertHashes } = order;
    const found = await discover({ distribution, server, token, caCertHashes, connect, signal });
    const { clock } = system.input;
    return obtainCertificate({ nodeName, found, connect, clock, signal });
  });
  writeIdentity(system.files, paths, identity);
  await runKubelet(system, { settings, identity, connect });
}

async function untilJoined<T>(system: GuestSystem, join: () => Promise<T>): Promise<T> {
  const { clock } = system.input;
  const giveUpAt = clock.monotonic() + PATIENCE_MS;
  let said = '';
  for (;;) {
    try {
      return await join();
    } catch (error) {
      system.signal.throwIfAborted();
      if (error instanceof JoinRefused) throw error;
      const message = error instanceof Error ? error.message : String(error);
      if (clock.monotonic() >= giveUpAt) throw new JoinRefused(`timed out: ${message}`);
      if (message !== said) system.warn(`join: ${message}`);
      said = message;
    }
    await clock.sleep(RETRY_MS, { signal: system.signal });
  }
}

export async function runKubelet(
  system: GuestSystem,
  order: {
    readonly settings: KubeletSettings;
    readonly identity: NodeIdentity;
    readonly connect: OpenConnection;
  },
): Promise<void> {
  const { settings, identity, connect } = order;
  system.kubelet?.abort();
  const stop = new AbortController();
  system.kubelet = stop;
  const signal = AbortSignal.any([stop.signal, system.signal]);
  const { server, caPem, certPem, keyPem } = identity;
  const transport = await connect({ caPem, client: { certPem, keyPem } });
  const api = new ServerApi({ transport, server, signal });
  const { clock, speed, vmId } = system.input;
  const node = new NodeContext({
    settings,
    facts: factsOf(system, settings),
    api,
    clock,
    speed,
    vmId,
    signal,
    complain: (message) => system.fail(message),
  });
  void untilStopped(new Kubelet(node), api);
}

async function untilStopped(kubelet: Kubelet, api: ServerApi): Promise<void> {
  await kubelet.run();
  await api.close();
}

function factsOf(system: GuestSystem, settings: KubeletSettings): MachineFacts {
  const { input, files, network, profile } = system;
  return {
    size: { cpus: input.cpus, memoryBytes: input.memoryBytes, diskBytes: input.disk.sizeBytes },
    systemUuid: input.smbiosUuid,
    machineId: files.read('/etc/machine-id')?.trim() ?? '',
    bootId: input.random.uuid(),
    os: profile.osInfo,
    hostname: system.hostname,
    address: argument(settings, 'node-ip') ?? network.firstAddress,
  };
}
