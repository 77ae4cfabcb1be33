// SPDX-License-Identifier: Apache-2.0
// What a kubelet would say when it registers, and where it read that. In a guest without a way out the attempt is only
// recorded, and it counts as joined; with one, the server that it names decides.
import type { JoinAttempt } from '../guest-types.ts';
import { type IdentityPaths, readIdentity, writeIdentity } from '../kubelet/identity.ts';
import { joinCluster, runKubelet } from '../kubelet/kubelet-service.ts';
import type { KubeletSettings } from '../kubelet/settings.ts';
import { type Call, failure, OK, type Outcome } from '../shell/command.ts';
import type { GuestSystem } from '../system/system.ts';

export interface Join {
  readonly attempt: Omit<JoinAttempt, 'providerId' | 'atMs'> & {
    readonly server: string;
    readonly token: string;
  };
  /** Of the program that joins. */
  readonly version: string;
  readonly paths: IdentityPaths;
}

export async function joinWith(call: Call, { attempt, version, paths }: Join): Promise<Outcome> {
  const { system } = call;
  const [providerId] = kubeletFlag(attempt.kubeletArgs, 'provider-id');
  system.history.joinAttempts.push({ ...attempt, providerId, atMs: system.now() });
  system.changed();
  const { connect } = system.input;
  if (connect === undefined) {
    writeIdentity(system.files, paths, standIn(attempt.nodeName, attempt.server));
    return OK;
  }
  const { server, token, caCertHashes } = attempt;
  const settings = settingsOf({ ...attempt, providerId, version });
  try {
    await joinCluster(system, { settings, server, token, caCertHashes, paths, connect });
  } catch (error) {
    system.signal.throwIfAborted();
    const message = `${attempt.distribution}: ${error instanceof Error ? error.message : ''}`;
    system.fail(message);
    return failure(1, message);
  }
  system.changed();
  return OK;
}

/** A node that has its certificates needs no token. False when it has none. */
export async function rejoin(
  system: GuestSystem,
  paths: IdentityPaths,
  known: Omit<Parameters<typeof settingsOf>[0], 'providerId'>,
): Promise<boolean> {
  const identity = readIdentity(system.files, paths);
  if (identity === undefined) return false;
  const { connect } = system.input;
  if (connect === undefined) return true;
  const [providerId] = kubeletFlag(known.kubeletArgs, 'provider-id');
  await runKubelet(system, { settings: settingsOf({ ...known, providerId }), identity, connect });
  return true;
}

function settingsOf(
  known: Pick<JoinAttempt, 'distribution' | 'nodeName' | 'labels' | 'taints' | 'kubeletArgs'> & {
    readonly providerId: string | undefined;
    readonly version: string;
  },
): KubeletSettings {
  const { distribution, nodeName, labels, taints, kubeletArgs, providerId, version } = known;
  return { distribution, nodeName, labels, taints, args: kubeletArgs, providerId, version };
}

function standIn(nodeName: string, server: string) {
  return { nodeName, server, caPem: 'simulated\n', certPem: 'simulated\n', keyPem: 'simulated\n' };
}

/** The comma-separated values of one kubelet flag. */
export function kubeletFlag(kubeletArgs: readonly string[], flag: string): string[] {
  return kubeletArgs
    .filter((arg) => arg.startsWith(`${flag}=`))
    .flatMap((arg) => arg.slice(flag.length + 1).split(','))
    .filter((value) => value !== '');
}
