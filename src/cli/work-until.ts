// SPDX-License-Identifier: Apache-2.0
// Asks the fleet for something and sees it done: this process drives if nobody does, and watches otherwise. What
// was asked for is durable; whoever interrupts this leaves a state from which the next driver goes on.
import type { DriverEvents, PassReport } from '../fleet/index.ts';
import { RECONCILE_LEASE_MS } from '../model/lease.ts';
import type { Machine } from '../model/machine.ts';
import { asPvescalerError, Cancelled, Conflict, TimedOut } from '../ports/errors.ts';
import type { CommandHost } from './context.ts';
import type { OpenFleet } from './open-fleet.ts';
import { leftToDo, nameOf, troubleOf } from './unfinished.ts';

export interface Errand {
  /** Regions that must have been seen before anything is asked for: what is there decides what is lacking. */
  readonly regions: readonly string[];
  readonly ask: () => Promise<void>;
  /** Told how many rounds of this process have seen everything. */
  readonly isDone: (rounds: number) => Promise<boolean>;
  /** Those whose end is waited for. */
  readonly isLeft: (machine: Machine) => boolean;
  /** Absent: as long as it takes. */
  readonly timeoutMs?: number | undefined;
  /** What to do about another process that drives, where its work is no help; absent: it is watched. */
  readonly ifAnotherDrives?: string;
}

const LOOK_EVERY_MS = 250;
/** Longer than the lease of a dead process lasts. */
const ANOTHER_LIVES_MS = RECONCILE_LEASE_MS + 5_000;

export async function workUntilDone(
  host: CommandHost,
  open: OpenFleet,
  errand: Errand,
): Promise<void> {
  const { context } = host;
  const over = new AbortController();
  const watch = new Watch(host, open, errand.regions);
  let broken: unknown;
  const driving = open.fleet
    .runDriver({ signal: context.signal, finish: over.signal, events: watch })
    .catch((error: unknown) => {
      broken = error;
    });
  const giveUpAt = context.clock.monotonic() + (errand.timeoutMs ?? Number.POSITIVE_INFINITY);
  const goOn = async () => {
    if (broken !== undefined) throw asPvescalerError(broken);
    if (context.signal.aborted) throw new Cancelled('CANCELLED', ...(await ending('interrupted')));
    if (context.clock.monotonic() >= giveUpAt)
      throw new TimedOut('REQUEST_TIMED_OUT', ...(await ending('not done in time')));
    requireDriving(watch, errand.ifAnotherDrives);
    await watch.tellNews();
    await context.clock.sleep(LOOK_EVERY_MS, { signal: context.signal }).catch(() => undefined);
  };
  let isAsked = false;
  const ending = async (what: string): Promise<readonly [string, { readonly hint: string }]> => {
    if (!isAsked) return [`${what}; nothing was asked for`, { hint: 'Run the command again.' }];
    const { machines } = await open.fleet.status();
    const left = await leftToDo(open, machines.filter(errand.isLeft));
    const hint =
      watch.other === undefined
        ? 'What was asked for is kept. Run the command again, or any other driver, to go on from here.'
        : `What was asked for is kept, and ${watch.other.holder} goes on with it.`;
    return [`${what}: ${left}`, { hint }];
  };
  try {
    while (!watch.isSighted) await goOn();
    await errand.ask();
    isAsked = true;
    while (!(await errand.isDone(watch.rounds))) await goOn();
    await watch.tellNews();
  } finally {
    over.abort();
    await driving;
  }
}

function requireDriving({ other }: Watch, hint: string | undefined): void {
  if (hint === undefined || other === undefined || other.forMs < ANOTHER_LIVES_MS) return;
  throw new Conflict('LEASE_HELD', `${other.holder} drives the fleet`, { hint });
}

class Watch implements DriverEvents {
  readonly #host: CommandHost;
  readonly #open: OpenFleet;
  readonly #regions: readonly string[];
  readonly #phases = new Map<string, string>();
  #sequence: number | undefined;
  #said = '';
  #other: { readonly holder: string; readonly since: number } | undefined;
  isSighted = false;
  rounds = 0;

  constructor(host: CommandHost, open: OpenFleet, regions: readonly string[]) {
    this.#host = host;
    this.#open = open;
    this.#regions = regions;
  }

  /** Who drives in the place of this process, and for how long by now. */
  get other(): { readonly holder: string; readonly forMs: number } | undefined {
    if (this.#other === undefined) return undefined;
    const { holder, since } = this.#other;
    return { holder, forMs: this.#host.context.clock.monotonic() - since };
  }

  readonly onPassBegin = (): void => {
    this.#other = undefined;
  };

  readonly onPass = ({ stale, undecided }: PassReport): void => {
    if (Object.keys(stale).length + undecided.length === 0) this.rounds += 1;
    const unread = this.#regions.find((region) => stale[region] !== undefined);
    const making = this.#regions.find((region) => undecided.includes(region));
    if (unread !== undefined) this.#sayOnce(`region ${unread} cannot be read: ${stale[unread]}`);
    else if (making !== undefined) {
      this.#sayOnce(`region ${making}: waiting for a VM of which nobody can say yet whose it is`);
    } else this.isSighted = true;
  };

  readonly onWaiting = (holder: string): void => {
    this.#sayOnce(`${holder} drives; watching`);
    if (this.#other?.holder !== holder) {
      this.#other = { holder, since: this.#host.context.clock.monotonic() };
    }
    this.isSighted = true;
  };

  readonly onError = (error: Error): void => this.#sayOnce(error.message);

  /** What has changed since the last look: phases, and everything that was refused or failed. */
  async tellNews(): Promise<void> {
    await this.#tellPhases();
    const isFirst = this.#sequence === undefined;
    const news = await this.#open.store.journal.read({ after: this.#sequence ?? 0 });
    this.#sequence = news.at(-1)?.sequence ?? this.#sequence ?? 0;
    if (isFirst) return;
    for (const { kind, message } of news) {
      if (kind === 'refused' || kind === 'failed') this.#say(message);
    }
  }

  async #tellPhases(): Promise<void> {
    const { machines } = await this.#open.fleet.status();
    for (const machine of machines) {
      const before = this.#phases.get(machine.id);
      this.#phases.set(machine.id, machine.phase);
      if (before === undefined && isOver(machine)) continue;
      if (before === machine.phase) continue;
      // Told long ago, by whoever drives, and not again.
      const trouble = before === undefined ? await troubleOf(this.#open, machine) : undefined;
      const why = trouble === undefined ? '' : `; ${trouble}`;
      this.#say(`${nameOf(machine)}: ${machine.phase}${why}`);
    }
  }

  #sayOnce(words: string): void {
    if (this.#said === words) return;
    this.#said = words;
    this.#say(words);
  }

  #say(words: string): void {
    this.#host.context.err(`${words}\n`);
  }
}

function isOver({ phase }: Machine): boolean {
  return phase === 'gone' || phase === 'failed';
}
