// SPDX-License-Identifier: Apache-2.0
// The worker end of the gRPC worker thread: the autoscaler's calls do not wait for reconcile passes. The worker has its
// own fleet client on the store, as another process would; the capacity forecast comes from the driver thread.
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
  CurrentSettings,
  type GrpcCall,
  type ReadText,
  type RunningExternalGrpc,
  serveExternalGrpc,
} from '../index.ts';
import type { GrpcServerOptions, MessageFromWorker, MessageToWorker } from './messages.ts';

export interface GrpcWorkerParts {
  readonly channel: ThreadChannel<MessageFromWorker, MessageToWorker>;
  readonly options: GrpcServerOptions;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly read: ReadText;
}

/** Shorter than the time between a call of the autoscaler and its next decision. */
const REFRESH_INTERVAL_MS = 100;
const REPORT_INTERVAL_MS = 250;
/** The supervisor treats a silent worker as hung. */
const HEARTBEAT_EVERY_REPORTS = 4;

/** Resolves when the server has closed after a close message. */
export async function runGrpcWorker({
  channel,
  options,
  store,
  ...parts
}: GrpcWorkerParts): Promise<void> {
  const { clock, random, read } = parts;
  const settings = new CurrentSettings(options.settings, clock);
  const pools = () => Object.fromEntries(settings.value.pools.map((pool) => [pool.name, pool]));
  const client = createFleetClient({ store, clock, random, pools });
  const forecast = new ReportedForecast(clock);
  const receiver = new ReportReceiver(client.view, forecast);
  const shutdown = new AbortController();
  const closing = new AbortController();
  const calls: GrpcCall[] = [];
  channel.onMessage((message) => {
    if (message.kind === 'forecast') void receiver.receive(message.report);
    else if (message.kind === 'settings') settings.replace(message.settings);
    else if (message.kind === 'ending') shutdown.abort();
    else closing.abort();
  });
  const server = await serveExternalGrpc({
    ...options,
    settings,
    fleet: { ...client, forecast },
    clock,
    read,
    warn: (message) => channel.send({ kind: 'warning', message }),
    signal: shutdown.signal,
    staleness: () => store.staleness?.(),
    onCall: (call) => void calls.push(call),
    refreshIntervalMs: REFRESH_INTERVAL_MS,
  });
  const { port, expanderPort } = server;
  channel.send({ kind: 'listening', port, expanderPort });
  const reporter = new StatusReporter(channel, server, calls);
  while (!closing.signal.aborted) {
    reporter.report();
    await clock.sleep(REPORT_INTERVAL_MS, { signal: closing.signal }).catch(() => undefined);
  }
  await server.close();
  reporter.report();
}

/** Applies a forecast after the view contains the records that the forecast refers to; the store has them already. */
class ReportReceiver {
  readonly #view: Pick<FleetView, 'refresh'>;
  readonly #forecast: ReportedForecast;
  #latest = 0;

  constructor(view: Pick<FleetView, 'refresh'>, forecast: ReportedForecast) {
    this.#view = view;
    this.#forecast = forecast;
  }

  async receive(report: ForecastReport): Promise<void> {
    this.#latest += 1;
    const sequence = this.#latest;
    const isEmpty = Object.keys(report.regions).length === 0;
    if (!isEmpty && !(await this.#refreshView())) return;
    if (sequence === this.#latest) this.#forecast.set(report);
  }

  /** False when the store cannot be read. The regular refresh logs the reason; the previous forecast expires. */
  #refreshView(): Promise<boolean> {
    return this.#view.refresh().then(
      () => true,
      () => false,
    );
  }
}

class StatusReporter {
  readonly #link: ThreadChannel<MessageFromWorker, MessageToWorker>;
  readonly #server: Pick<RunningExternalGrpc, 'waitingFor'>;
  readonly #calls: GrpcCall[];
  #lastReported: string | undefined;
  #reportsSkipped = 0;

  constructor(
    channel: ThreadChannel<MessageFromWorker, MessageToWorker>,
    server: Pick<RunningExternalGrpc, 'waitingFor'>,
    calls: GrpcCall[],
  ) {
    this.#link = channel;
    this.#server = server;
    this.#calls = calls;
  }

  report(): void {
    if (this.#calls.length > 0) this.#link.send({ kind: 'calls', calls: this.#calls.splice(0) });
    const waitingFor = this.#server.waitingFor();
    const text = waitingFor.join('\n');
    this.#reportsSkipped += 1;
    // An unchanged status is repeated as a heartbeat.
    if (text === this.#lastReported && this.#reportsSkipped < HEARTBEAT_EVERY_REPORTS) return;
    this.#reportsSkipped = 0;
    this.#lastReported = text;
    this.#link.send({ kind: 'waiting', waitingFor });
  }
}
