// SPDX-License-Identifier: Apache-2.0
// Asks the fleet for something and sees it done: this process drives if nobody does, and watches otherwise. What
// was asked for is durable; whoever interrupts this leaves a state from which the next driver goes on.
import type { RoundReport } from '../fleet/index.ts';
import type { Machine } from '../model/machine.ts';
import { asPvescalerError, Cancelled } from '../ports/errors.ts';
import type { CommandHost } from './context.ts';
import type { OpenFleet } from './open-fleet.ts';

export interface Errand {
  /** Regions that must have been seen before anything is asked for: what is there decides what is lacking. */
  readonly regions: readonly string[];
  readonly ask: () => Promise<void>;
  readonly isDone: () => Promise<boolean>;
}

const LOOK_EVERY_MS = 250;

export async function workUntilDone(
  host: CommandHost,
  open: OpenFleet,
  errand: Errand,
): Promise<void> {
  const { context } = host;
  const over = new AbortController();
  const watch = new Watch(host, open, errand.regions);
  const signal = AbortSignal.any([context.signal, over.signal]);
  let broken: unknown;
  const driving = open.fleet.drive({ signal, events: watch }).catch((error: unknown) => {
    broken = error;
  });
  const goOn = async () => {
    if (broken !== undefined) throw asPvescalerError(broken);
    if (context.signal.aborted) throw interrupted();
    await watch.tellNews();
    await context.clock.sleep(LOOK_EVERY_MS, { signal: context.signal }).catch(() => undefined);
  };
  try {
    while (!watch.isSighted) await goOn();
    await errand.ask();
    // What a round has begun it brings to an end.
    while (watch.isInRound || !(await errand.isDone())) await goOn();
    await watch.tellNews();
  } finally {
    over.abort();
    await driving;
  }
}

function interrupted(): Cancelled {
  return new Cancelled('CANCELLED', 'interrupted; what was asked for is kept', {
    hint: 'Run the command again, or any other driver, to go on from here.',
  });
}

class Watch {
  readonly #host: CommandHost;
  readonly #open: OpenFleet;
  readonly #regions: readonly string[];
  readonly #phases = new Map<string, string>();
  #sequence: number | undefined;
  #said = '';
  isSighted = false;
  isInRound = false;

  constructor(host: CommandHost, open: OpenFleet, regions: readonly string[]) {
    this.#host = host;
    this.#open = open;
    this.#regions = regions;
  }

  readonly onRoundBegin = (): void => {
    this.isInRound = true;
  };

  readonly onRoundEnd = (): void => {
    this.isInRound = false;
  };

  readonly onRound = ({ stale, undecided }: RoundReport): void => {
    const unread = this.#regions.find((region) => stale[region] !== undefined);
    const making = this.#regions.find((region) => undecided.includes(region));
    if (unread !== undefined) this.#sayOnce(`region ${unread} cannot be read: ${stale[unread]}`);
    else if (making !== undefined) {
      this.#sayOnce(`region ${making}: waiting for a VM of which nobody can say yet whose it is`);
    } else this.isSighted = true;
  };

  readonly onWaiting = (holder: string): void => {
    this.#sayOnce(`${holder} drives; watching`);
    this.isSighted = true;
  };

  readonly onTrouble = (error: Error): void => this.#sayOnce(error.message);

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
      if (before !== machine.phase) this.#say(`${nameOf(machine)}: ${machine.phase}`);
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

export function nameOf({ id, placement }: Machine): string {
  return placement?.name ?? id;
}
