// SPDX-License-Identifier: Apache-2.0
// The kubelet service of a guest: joins once with a token, then runs until it is stopped or the power is off.
import type { GuestSystem } from '../system/system.ts';
import { type DiscoveredServer, type DiscoveryRequest, discoverServer } from './discovery.ts';
import { type IdentityPaths, type NodeIdentity, writeIdentity } from './identity.ts';
import { Kubelet } from './kubelet.ts';
import { obtainCertificate } from './node-certificate.ts';
import { NodeContext } from './node-context.ts';
import type { GuestFacts } from './node-object.ts';
import { JoinRefusedError, type OpenConnection, ServerApi } from './server-api.ts';
import { type KubeletSettings, kubeletArgument, parseLabels, parseTaints } from './settings.ts';

export interface JoinRequest {
  readonly settings: KubeletSettings;
  readonly server: string;
  readonly token: string;
  readonly caCertHashes: readonly string[];
  readonly paths: IdentityPaths;
  readonly connect: OpenConnection;
}

/** In real time, because the server is outside the simulation. */
const JOIN_RETRY_MS = 1_000;
const JOIN_TIMEOUT_MS = 300_000;

/** Rejects with JoinRefusedError when a retry cannot help or the join timed out. */
export async function joinCluster(system: GuestSystem, request: JoinRequest): Promise<void> {
  const { settings, connect, paths } = request;
  // Invalid labels or taints prevent the kubelet's start, so they must fail before the certificate request.
  parseLabels(settings);
  parseTaints(settings);
  const identity = await retryUntilJoined(system, async () => {
    const { signal } = system;
    const { distribution, nodeName } = settings;
    const { server, token, caCertHashes } = request;
    const discovered = await discoverServer({
      distribution,
      server,
      token,
      caCertHashes,
      connect,
      signal,
    });
    const { clock } = system.input;
    return obtainCertificate({ nodeName, discovered, connect, clock, signal });
  });
  writeIdentity(system.files, paths, identity);
  await runKubelet(system, { settings, identity, connect });
}

/** Finds the server of a node that has joined; waits while it is unreachable, without a limit. */
export function findJoinedServer(
  system: GuestSystem,
  request: Omit<DiscoveryRequest, 'signal'>,
): Promise<DiscoveredServer> {
  const { signal } = system;
  return retryUntilJoined(
    system,
    () => discoverServer({ ...request, signal }),
    Number.POSITIVE_INFINITY,
  );
}

async function retryUntilJoined<T>(
  system: GuestSystem,
  join: () => Promise<T>,
  timeoutMs = JOIN_TIMEOUT_MS,
): Promise<T> {
  const { clock } = system.input;
  const deadline = clock.monotonic() + timeoutMs;
  let lastMessage = '';
  for (;;) {
    try {
      return await join();
    } catch (error) {
      system.signal.throwIfAborted();
      if (error instanceof JoinRefusedError) throw error;
      const message = error instanceof Error ? error.message : String(error);
      if (clock.monotonic() >= deadline)
        throw new JoinRefusedError(`timed out after ${timeoutMs / 1000} s: ${message}`);
      if (message !== lastMessage) system.recordWarning(`join: ${message}`);
      lastMessage = message;
    }
    await clock.sleep(JOIN_RETRY_MS, { signal: system.signal });
  }
}

export async function runKubelet(
  system: GuestSystem,
  options: {
    readonly settings: KubeletSettings;
    readonly identity: NodeIdentity;
    readonly connect: OpenConnection;
  },
): Promise<void> {
  const { settings, identity, connect } = options;
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
    facts: readGuestFacts(system, settings),
    api,
    clock,
    speed,
    vmId,
    signal,
    onError: (message) => system.recordError(message),
  });
  void runUntilStopped(new Kubelet(node), api);
}

async function runUntilStopped(kubelet: Kubelet, api: ServerApi): Promise<void> {
  await kubelet.run();
  await api.close();
}

function readGuestFacts(system: GuestSystem, settings: KubeletSettings): GuestFacts {
  const { input, files, network, profile } = system;
  return {
    size: { cpus: input.cpus, memoryBytes: input.memoryBytes, diskBytes: input.disk.sizeBytes },
    systemUuid: input.smbiosUuid,
    machineId: files.read('/etc/machine-id')?.trim() ?? '',
    bootId: input.random.uuid(),
    os: profile.osInfo,
    hostname: system.hostname,
    address: kubeletArgument(settings, 'node-ip') ?? network.firstAddress,
  };
}
