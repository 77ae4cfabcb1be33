// SPDX-License-Identifier: Apache-2.0
// The first reading of both sides, by every process, also by one that only stands by: it shall not be called ready
// before it could take over.
import type { Clock } from '../../ports/clock.ts';
import { asPvescalerError, Cancelled } from '../../ports/errors.ts';
import type { OpenFleet } from '../open-fleet.ts';
import type { Vigil } from './vigil.ts';

const AGAIN_MS = 2_000;

interface SyncParts {
  readonly clock: Clock;
  readonly vigil: Vigil;
  readonly signal: AbortSignal;
}

export async function firstSync(open: OpenFleet, parts: SyncParts): Promise<void> {
  const { signal } = parts;
  const reads: [string, () => Promise<unknown>][] = [...open.hypervisors].map(([name, one]) => [
    `Proxmox region ${name}`,
    () => one.view({ signal }),
  ]);
  const { cluster } = open;
  if (cluster !== undefined) reads.push(['Kubernetes', () => cluster.view()]);
  await Promise.all(reads.map(([what, read]) => untilRead(what, read, parts)));
}

export function awaitSides(regions: readonly string[], hasCluster: boolean, vigil: Vigil): void {
  for (const region of regions) vigil.awaits(`Proxmox region ${region}`);
  if (hasCluster) vigil.awaits('Kubernetes');
}

async function untilRead(
  what: string,
  read: () => Promise<unknown>,
  { clock, vigil, signal }: SyncParts,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await read();
      vigil.seen(what);
      return;
    } catch (error) {
      const ours = asPvescalerError(error);
      if (ours instanceof Cancelled) return;
      vigil.awaits(what, ours.message);
      await clock.sleep(AGAIN_MS, { signal }).catch(() => undefined);
    }
  }
}
