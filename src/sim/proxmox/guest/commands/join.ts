// SPDX-License-Identifier: Apache-2.0
// Joins a guest to a Kubernetes cluster with the settings of its distribution. Without `connect` the attempt is only
// recorded and succeeds; with it, the guest joins the real server.
import type { JoinAttempt } from '../guest-types.ts';
import { type IdentityPaths, readIdentity, writeIdentity } from '../kubelet/identity.ts';
import { findJoinedServer, joinCluster, runKubelet } from '../kubelet/kubelet-service.ts';
import type { KubeletSettings } from '../kubelet/settings.ts';
import { type CommandCall, type CommandResult, failure, OK } from '../shell/command.ts';
import type { GuestSystem } from '../system/system.ts';

export interface NodeJoin {
  readonly attempt: Omit<JoinAttempt, 'providerId' | 'atMs'> & {
    readonly server: string;
    readonly token: string;
  };
  /** Version of the program that joins. */
  readonly version: string;
  readonly paths: IdentityPaths;
}

export async function joinNode(
  call: CommandCall,
  { attempt, version, paths }: NodeJoin,
): Promise<CommandResult> {
  const { system } = call;
  const [providerId] = kubeletFlagValues(attempt.kubeletArgs, 'provider-id');
  system.history.joinAttempts.push({ ...attempt, providerId, atMs: system.now() });
  system.notifyChange();
  const { connect } = system.input;
  if (connect === undefined) {
    writeIdentity(system.files, paths, placeholderIdentity(attempt.nodeName, attempt.server));
    return OK;
  }
  const { server, token, caCertHashes } = attempt;
  const settings = toKubeletSettings({ ...attempt, providerId, version });
  return runJoin(system, attempt.distribution, () =>
    joinCluster(system, { settings, server, token, caCertHashes, paths, connect }),
  );
}

/** Starts the kubelet with the certificates on disk; does nothing when there are none. */
export async function startJoinedKubelet(
  system: GuestSystem,
  paths: IdentityPaths,
  node: Omit<Parameters<typeof toKubeletSettings>[0], 'providerId'>,
): Promise<void> {
  const identity = readIdentity(system.files, paths);
  const { connect } = system.input;
  if (identity === undefined || connect === undefined) return;
  const [providerId] = kubeletFlagValues(node.kubeletArgs, 'provider-id');
  const settings = toKubeletSettings({ ...node, providerId });
  await runKubelet(system, { settings, identity, connect });
}

/**
 * Starts the agent of k3s or RKE2 with the certificates on disk: verifies the server's CA by the hash in the token, and
 * uses no other part of it. Returns undefined when there are no certificates.
 */
export async function startJoinedAgent(
  { system }: CommandCall,
  { attempt, version, paths }: NodeJoin,
): Promise<CommandResult | undefined> {
  const identity = readIdentity(system.files, paths);
  if (identity === undefined) return undefined;
  const { connect } = system.input;
  if (connect === undefined) return OK;
  return runJoin(system, attempt.distribution, async () => {
    const { caPem } = await findJoinedServer(system, { ...attempt, connect });
    writeIdentity(system.files, paths, { ...identity, caPem });
    await startJoinedKubelet(system, paths, { ...attempt, version });
  });
}

async function runJoin(
  system: GuestSystem,
  distribution: string,
  join: () => Promise<void>,
): Promise<CommandResult> {
  try {
    await join();
  } catch (error) {
    system.signal.throwIfAborted();
    const message = `${distribution}: ${error instanceof Error ? error.message : ''}`;
    system.recordError(message);
    return failure(1, message);
  }
  system.notifyChange();
  return OK;
}

function toKubeletSettings(
  node: Pick<JoinAttempt, 'distribution' | 'nodeName' | 'labels' | 'taints' | 'kubeletArgs'> & {
    readonly providerId: string | undefined;
    readonly version: string;
  },
): KubeletSettings {
  const { distribution, nodeName, labels, taints, kubeletArgs, providerId, version } = node;
  return { distribution, nodeName, labels, taints, args: kubeletArgs, providerId, version };
}

function placeholderIdentity(nodeName: string, server: string) {
  return { nodeName, server, caPem: 'simulated\n', certPem: 'simulated\n', keyPem: 'simulated\n' };
}

/** The comma-separated values of one kubelet flag. */
export function kubeletFlagValues(kubeletArgs: readonly string[], flag: string): string[] {
  return kubeletArgs
    .filter((arg) => arg.startsWith(`${flag}=`))
    .flatMap((arg) => arg.slice(flag.length + 1).split(','))
    .filter((value) => value !== '');
}
