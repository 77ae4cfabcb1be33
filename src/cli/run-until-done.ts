// SPDX-License-Identifier: Apache-2.0
// Submits a request to the fleet and waits until it is done. This process drives the fleet unless another one does.
// Requests are durable: after an interruption the next driver continues.
import type { Fleet } from '../fleet/index.ts';
import { formatCount } from '../model/format-text.ts';
import type { Intent } from '../model/intent.ts';
import { RECONCILE_LEASE_MS } from '../model/lease.ts';
import type { Machine, MachineId } from '../model/machine.ts';
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
  /**
   * After an interruption: withdraws what is not begun, and resolves to true when that has taken effect. Called until
   * then. Calls in progress are finished, so that the records show what they did. Absent: they are aborted at once.
   */
  readonly cancel?: () => Promise<boolean>;
  /** Hint of the error when another process drives; absent: the command watches the other process. */
  readonly ifAnotherDrives?: string;
}

const POLL_MS = 250;
/** For `cancel` to take effect. A second signal ends the process at once. */
const MAX_CANCEL_MS = 10_000;
/** From an interruption until calls in progress are aborted. */
const MAX_FINISH_MS = 20_000;
/** Longer than the lease of a dead process lasts. */
const OTHER_DRIVER_ALIVE_MS = RECONCILE_LEASE_MS + 5_000;

/** Requests that are not carried out yet, as the last status has read them. Some wait for long, for newer settings. */
export function listOpenIntents({ view }: Pick<Fleet, 'view'>): readonly Intent[] {
  return view.intents.all().filter(({ state }) => state === 'open');
}

/** Whether a request for one of these machines is not carried out yet. */
export function isRequestOpen(
  fleet: Pick<Fleet, 'view'>,
  machines: ReadonlySet<MachineId>,
): boolean {
  return listOpenIntents(fleet).some((intent) => intent.machines.some((id) => machines.has(id)));
}

export async function runUntilDone(
  host: CommandHost,
  open: OpenFleet,
  operation: FleetOperation,
): Promise<void> {
  const { context } = host;
  /** Lets the driver finish the work in progress; `signal` interrupts it. */
  const finish = new AbortController();
  const { cancel } = operation;
  const delayed = new DelayedAbort(context, MAX_FINISH_MS);
  const signal = cancel === undefined ? context.signal : delayed.signal;
  const progress = new Progress(host, open, operation.regions);
  let driverError: unknown;
  const driving = open.fleet
    .runDriver({ signal, finish: finish.signal, events: progress.events })
    .catch((error: unknown) => {
      driverError = error;
    });
  const deadline = context.clock.monotonic() + (operation.timeoutMs ?? Number.POSITIVE_INFINITY);
  let isSubmitted = false;
  const poll = async () => {
    if (driverError !== undefined) throw asPvescalerError(driverError);
    const end = { open, operation, progress, isSubmitted };
    if (context.signal.aborted) {
      if (isSubmitted && cancel !== undefined) await cancelUntilDone(host, progress, cancel);
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
    if (!isSubmitted) delayed.abort();
    await driving;
    delayed.abort();
    host.showStatus('');
  }
}

/** Aborts some time after the process was interrupted. */
class DelayedAbort {
  readonly #abort = new AbortController();
  readonly signal = this.#abort.signal;

  constructor({ signal, clock }: CommandHost['context'], delayMs: number) {
    const abortLater = () => {
      clock.sleep(delayMs, { signal: this.signal }).then(
        () => this.abort(),
        () => undefined,
      );
    };
    signal.addEventListener('abort', abortLater, { once: true, signal: this.signal });
  }

  abort(): void {
    this.#abort.abort();
  }
}

async function cancelUntilDone(
  { context }: CommandHost,
  progress: Progress,
  cancel: () => Promise<boolean>,
): Promise<void> {
  context.err('interrupted; finishing calls in progress. Press Ctrl-C again to end at once.\n');
  const deadline = context.clock.monotonic() + MAX_CANCEL_MS;
  while (!(await cancel()) && context.clock.monotonic() < deadline) {
    await progress.printChanges();
    await context.clock.sleep(POLL_MS);
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
    const message = `${cause} before anything was requested`;
    const { waitsFor } = progress;
    if (waitsFor === undefined) return [message, { hint: 'Run the command again.' }];
    const hint =
      'Nothing was changed. pvescaler doctor shows what is wrong; then run the command again.';
    return [`${message}: ${waitsFor}`, { hint }];
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
