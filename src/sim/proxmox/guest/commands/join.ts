// SPDX-License-Identifier: Apache-2.0
// What a kubelet would say when it registers, and where it read that. Whether the cluster lets it in is for
// whoever reads the attempt.
import type { JoinAttempt } from '../guest-types.ts';
import type { Call, Outcome } from '../shell/command.ts';
import { OK } from '../shell/command.ts';

export function recordJoin(call: Call, attempt: Omit<JoinAttempt, 'providerId' | 'atMs'>): Outcome {
  const [providerId] = kubeletFlag(attempt.kubeletArgs, 'provider-id');
  call.system.history.joinAttempts.push({ ...attempt, providerId, atMs: call.system.now() });
  call.system.changed();
  return OK;
}

/** The comma-separated values of one kubelet flag. */
export function kubeletFlag(kubeletArgs: readonly string[], flag: string): string[] {
  return kubeletArgs
    .filter((arg) => arg.startsWith(`${flag}=`))
    .flatMap((arg) => arg.slice(flag.length + 1).split(','))
    .filter((value) => value !== '');
}
