// SPDX-License-Identifier: Apache-2.0
// The face in a thread of its own: whatever a round of the fleet has to work through, the autoscaler's calls do not
// wait for it. It has its own desk on the store, like any other process; only the forecast comes from the thread that
// drives.
import {
  createFleetClient,
  type FleetView,
  type ForecastReport,
  ReportedForecast,
} from '../../fleet/index.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import type { Store } from '../../ports/store.ts';
import type { ThreadChannel } from '../../ports/thread-channel.ts';
import {
  type GrpcCall,
  type ReadText,
  type RunningExternalGrpc,
  serveExternalGrpc,
} from '../index.ts';
import type { FaceOrder, FromFace, ToFace } from './messages.ts';

export interface AnsweringParts {
  readonly link: ThreadChannel<FromFace, ToFace>;
  readonly order: FaceOrder;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly read: ReadText;
}

/** A tenth of a second is less than the autoscaler takes from one call to the next decision. */
const FOLLOW_EVERY_MS = 100;
const TELL_EVERY_MS = 250;
/** Of these. */
const PULSE_EVERY = 4;

/** Resolves when it was told to close and has. */
export async function answer({ link, order, store, ...parts }: AnsweringParts): Promise<void> {
  const { clock, random, read } = parts;
  const desk = createFleetClient({ store, clock, random, pools: order.terms });
  const forecast = new ReportedForecast(clock);
  const reports = new Reports(desk.view, forecast);
  const ending = new AbortController();
  const closing = new AbortController();
  const calls: GrpcCall[] = [];
  link.onMessage((message) => {
    if (message.kind === 'forecast') void reports.take(message.report);
    else if (message.kind === 'ending') ending.abort();
    else closing.abort();
  });
  const face = await serveExternalGrpc({
    ...order,
    fleet: { ...desk, forecast },
    clock,
    read,
    warn: (message) => link.send({ kind: 'warning', message }),
    signal: ending.signal,
    onCall: (call) => void calls.push(call),
    followEveryMs: FOLLOW_EVERY_MS,
  });
  const { port, expanderPort } = face;
  link.send({ kind: 'listening', port, expanderPort });
  const teller = new Teller(link, face, calls);
  while (!closing.signal.aborted) {
    teller.tell();
    await clock.sleep(TELL_EVERY_MS, { signal: closing.signal }).catch(() => undefined);
  }
  await face.close();
  teller.tell();
}

/** A report speaks of records that are in the store already: it holds once they are in the view. */
class Reports {
  readonly #view: Pick<FleetView, 'refresh'>;
  readonly #forecast: ReportedForecast;
  #latest = 0;

  constructor(view: Pick<FleetView, 'refresh'>, forecast: ReportedForecast) {
    this.#view = view;
    this.#forecast = forecast;
  }

  async take(report: ForecastReport): Promise<void> {
    this.#latest += 1;
    const mine = this.#latest;
    const isOver = Object.keys(report.regions).length === 0;
    if (!isOver && !(await this.#isFollowed())) return;
    if (mine === this.#latest) this.#forecast.set(report);
  }

  /** Why the store cannot be read is told by whoever follows all the time; the report before ends by itself. */
  #isFollowed(): Promise<boolean> {
    return this.#view.refresh().then(
      () => true,
      () => false,
    );
  }
}

class Teller {
  readonly #link: ThreadChannel<FromFace, ToFace>;
  readonly #face: Pick<RunningExternalGrpc, 'waitingFor'>;
  readonly #calls: GrpcCall[];
  #told: string | undefined;
  #quietFor = 0;

  constructor(
    link: ThreadChannel<FromFace, ToFace>,
    face: Pick<RunningExternalGrpc, 'waitingFor'>,
    calls: GrpcCall[],
  ) {
    this.#link = link;
    this.#face = face;
    this.#calls = calls;
  }

  tell(): void {
    if (this.#calls.length > 0) this.#link.send({ kind: 'calls', calls: this.#calls.splice(0) });
    const waitingFor = this.#face.waitingFor();
    const words = waitingFor.join('\n');
    this.#quietFor += 1;
    // Now and then also when nothing is new: who hears nothing takes us for dead.
    if (words === this.#told && this.#quietFor < PULSE_EVERY) return;
    this.#quietFor = 0;
    this.#told = words;
    this.#link.send({ kind: 'waiting', waitingFor });
  }
}
