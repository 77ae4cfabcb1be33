// SPDX-License-Identifier: Apache-2.0
// Submits a request to the fleet and waits until it is done. This process drives the fleet unless another one does.
// Requests are durable: after an interruption the next driver continues.
import { formatCount } from '../model/format-text.ts';
import { RECONCILE_LEASE_MS } from '../model/lease.ts';
import type { Machine } from '../model/machine.ts';
import { asPvescalerError, Cancelled, Conflict, TimedOut } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { describeUnfinished, Progress } from './progress.ts';

export interface FleetOperation {
  /** Regions that must be read before `submit`: what they contain decides what is missing. */
  readonly regions: readonly string[];
  readonly submit: () => Promise<void>;
  /** Passes before `submit`, unless another process drives: for requests that depend on the results of a pass. */
  readonly passesBeforeSubmit?: number;
  /** Receives the number of complete passes of this process. */
  readonly isDone: (completePasses: number) => Promise<boolean>;
  /** True for machines that the operation still waits for. */
  readonly isUnfinished: (machine: Machine) => boolean;
  /** Absent: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Hint of the error when another process drives; absent: the command watches the other process. */
  readonly ifAnotherDrives?: string;
}

const POLL_MS = 250;
/** Longer than the lease of a dead process lasts. */
const OTHER_DRIVER_ALIVE_MS = RECONCILE_LEASE_MS + 5_000;

export async function runUntilDone(
  host: CommandHost,
  open: OpenFleet,
  operation: FleetOperation,
): Promise<void> {
  const { context } = host;
  /** Lets the driver finish the work in progress; the context's signal interrupts it. */
  const finish = new AbortController();
  const progress = new Progress(host, open, operation.regions);
  let driverError: unknown;
  const driving = open.fleet
    .runDriver({ signal: context.signal, finish: finish.signal, events: progress.events })
    .catch((error: unknown) => {
      driverError = error;
    });
  const deadline = context.clock.monotonic() + (operation.timeoutMs ?? Number.POSITIVE_INFINITY);
  let isSubmitted = false;
  const poll = async () => {
    if (driverError !== undefined) throw asPvescalerError(driverError);
    const end = { open, operation, progress, isSubmitted };
    if (context.signal.aborted) {
      throw new Cancelled('CANCELLED', ...(await describeEnd('interrupted', end)));
    }
    if (context.clock.monotonic() >= deadline) {
      throw new TimedOut('REQUEST_TIMED_OUT', ...(await describeEnd('timed out', end)));
    }
    requireReadable(progress, isSubmitted);
    requireDriving(progress, operation.ifAnotherDrives);
    await progress.printChanges();
    await context.clock.sleep(POLL_MS, { signal: context.signal }).catch(() => undefined);
  };
  try {
    while (!maySubmit(progress, operation)) await poll();
    await operation.submit();
    isSubmitted = true;
    while (!(await operation.isDone(progress.completePasses))) await poll();
    await progress.printChanges();
  } finally {
    finish.abort();
    await driving;
  }
}

interface EndState {
  readonly open: OpenFleet;
  readonly operation: FleetOperation;
  readonly progress: Progress;
  readonly isSubmitted: boolean;
}

/** Message and hint of a command that ends before the operation is done. */
async function describeEnd(
  cause: string,
  { open, operation, progress, isSubmitted }: EndState,
): Promise<readonly [string, { readonly hint: string }]> {
  if (!isSubmitted) {
    return [`${cause} before anything was requested`, { hint: 'Run the command again.' }];
  }
  const { machines, openIntents } = await open.fleet.status();
  const unfinished = machines.filter(operation.isUnfinished);
  const what =
    unfinished.length === 0 && openIntents > 0
      ? describeRequests(openIntents)
      : await describeUnfinished(open, unfinished);
  const { otherDriver } = progress;
  const hint =
    otherDriver === undefined
      ? 'The request is saved. Run the command again, or start pvescaler serve, to continue.'
      : `The request is saved, and ${otherDriver.holder} continues with it.`;
  return [`${cause}: ${what}`, { hint }];
}

/** Requests whose machines have no record yet. */
function describeRequests(open: number): string {
  return `${formatCount(open, 'request')} ${open === 1 ? 'is' : 'are'} saved and not carried out yet`;
}

function maySubmit(progress: Progress, { passesBeforeSubmit = 0 }: FleetOperation): boolean {
  if (!progress.isSynced) return false;
  return progress.otherDriver !== undefined || progress.syncedPasses >= passesBeforeSubmit;
}

/** The first failure ends the command. After the request was saved only one does that lasts until an operator acts. */
function requireReadable({ readError }: Progress, isSubmitted: boolean): void {
  if (readError === undefined || (isSubmitted && readError.retry === 'backoff')) return;
  throw readError;
}

function requireDriving({ otherDriver }: Progress, hint: string | undefined): void {
  if (hint === undefined || otherDriver === undefined) return;
  if (otherDriver.forMs < OTHER_DRIVER_ALIVE_MS) return;
  throw new Conflict('LEASE_HELD', `${otherDriver.holder} drives the fleet`, { hint });
}
