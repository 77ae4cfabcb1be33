// SPDX-License-Identifier: Apache-2.0
// The first read of Proxmox and Kubernetes. Standby processes do it too: a process is ready only when it could take
// over.
import { isRefusal, refusalBackoffMs } from '../ports/backoff.ts';
import type { Clock } from '../ports/clock.ts';
import { asPvescalerError, Cancelled } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { Watchdog } from './watchdog.ts';

const RETRY_MS = 2_000;

interface SyncOptions {
  readonly clock: Clock;
  readonly watchdog: Watchdog;
  readonly signal: AbortSignal;
}

export async function waitForSync(open: OpenFleet, options: SyncOptions): Promise<void> {
  const { signal } = options;
  const reads: [string, () => Promise<unknown>][] = [...open.hypervisors].map(
    ([region, hypervisor]) => [`Proxmox region ${region}`, () => hypervisor.view({ signal })],
  );
  const { cluster } = open;
  if (cluster !== undefined) reads.push(['Kubernetes', () => cluster.view()]);
  await Promise.all(reads.map(([source, read]) => retryUntilRead(source, read, options)));
}

export function expectReads(
  regions: readonly string[],
  hasCluster: boolean,
  watchdog: Watchdog,
): void {
  for (const region of regions) watchdog.expectRead(`Proxmox region ${region}`);
  if (hasCluster) watchdog.expectRead('Kubernetes');
}

async function retryUntilRead(
  source: string,
  read: () => Promise<unknown>,
  { clock, watchdog, signal }: SyncOptions,
): Promise<void> {
  let refusals = 0;
  while (!signal.aborted) {
    try {
      await read();
      watchdog.markRead(source);
      return;
    } catch (cause) {
      const error = asPvescalerError(cause);
      if (error instanceof Cancelled) return;
      watchdog.expectRead(source, error.message);
      refusals = isRefusal(error) ? refusals + 1 : 0;
      const retryMs = refusals === 0 ? RETRY_MS : refusalBackoffMs(refusals);
      await clock.sleep(retryMs, { signal }).catch(() => undefined);
    }
  }
}
