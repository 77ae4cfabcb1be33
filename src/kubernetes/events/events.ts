// SPDX-License-Identifier: Apache-2.0
// Events are for people who look at a Node with kubectl. They are never worth a failure or a flood: the same one
// again raises a count, too many are dropped, and what cannot be written is forgotten.
import type { Clock } from '../../ports/clock.ts';
import type { ClusterEvent } from '../../ports/cluster.ts';
import { asPvescalerError, type PvescalerError } from '../../ports/errors.ts';
import type { Random } from '../../ports/random.ts';
import { type Api, FIELD_MANAGER, pathOf } from '../api.ts';
import { translateStatus } from '../status.ts';
import { TokenBucket } from './token-bucket.ts';

const BURST = 25;
const EVERY_MS = 5_000;
/** The same words within this are the same Event, seen once more. */
const SERIES_MS = 600_000;
const MOST_SERIES = 500;
const TIMEOUT_MS = 5_000;
const LONGEST_NOTE = 1_024;
const LONGEST_REASON = 128;

interface Series {
  readonly name: string;
  readonly namespace: string;
  count: number;
  lastAt: number;
}

export interface EventsOptions {
  readonly api: Api;
  readonly clock: Clock;
  readonly random: Random;
  /** Which process says it. */
  readonly instance: string;
  readonly onTrouble: (error: PvescalerError) => void;
}

export class Events {
  readonly #options: EventsOptions;
  readonly #bucket: TokenBucket;
  /** In the order of their last use. */
  readonly #series = new Map<string, Series>();

  constructor(options: EventsOptions) {
    this.#options = options;
    this.#bucket = new TokenBucket(options.clock, { burst: BURST, everyMs: EVERY_MS });
  }

  async emit(event: ClusterEvent, signal: AbortSignal): Promise<void> {
    const series = this.#seriesOf(event);
    series.count += 1;
    series.lastAt = this.#options.clock.monotonic();
    if (!this.#bucket.take()) return;
    try {
      if (series.count > 1 && (await this.#raise(series, signal))) return;
      await this.#create(event, series, signal);
    } catch (error) {
      this.#options.onTrouble(asPvescalerError(error));
    }
  }

  #seriesOf({ about, type, reason, message }: ClusterEvent): Series {
    const key = JSON.stringify([
      about.kind,
      about.namespace,
      about.name,
      about.uid,
      type,
      reason,
      message,
    ]);
    const known = this.#series.get(key);
    this.#series.delete(key);
    const isCurrent =
      known !== undefined && this.#options.clock.monotonic() - known.lastAt < SERIES_MS;
    const series = isCurrent ? known : this.#newSeries(about);
    this.#series.set(key, series);
    const [oldest] = this.#series.keys();
    if (this.#series.size > MOST_SERIES && oldest !== undefined) this.#series.delete(oldest);
    return series;
  }

  #newSeries(about: ClusterEvent['about']): Series {
    const unique = Buffer.from(this.#options.random.bytes(8)).toString('hex');
    return {
      name: `${about.name}.${unique}`,
      // Where kubectl looks for Events about what is in no namespace.
      namespace: about.kind === 'Namespace' ? 'default' : (about.namespace ?? 'default'),
      count: 0,
      lastAt: 0,
    };
  }

  // oxlint-disable-next-line max-params -- the event, where it is counted, and the way out
  async #create(event: ClusterEvent, series: Series, signal: AbortSignal): Promise<void> {
    await this.#options.api.require({
      method: 'POST',
      path: pathOfEvents(series.namespace),
      query: { fieldManager: FIELD_MANAGER },
      body: this.#object(event, series),
      doing: 'create event',
      timeoutMs: TIMEOUT_MS,
      signal,
    });
  }

  /** False: it is not there any more. */
  async #raise({ name, namespace, count }: Series, signal: AbortSignal): Promise<boolean> {
    const doing = 'count event';
    const answer = await this.#options.api.ask({
      method: 'PATCH',
      path: `${pathOfEvents(namespace)}/${encodeURIComponent(name)}`,
      query: { fieldManager: FIELD_MANAGER },
      contentType: 'application/merge-patch+json',
      body: { series: { count, lastObservedTime: microTime(this.#options.clock.now()) } },
      doing,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    if (answer.ok) return true;
    if (answer.status.code === 404) return false;
    throw translateStatus(answer.status, doing);
  }

  #object({ about, type, reason, message }: ClusterEvent, { name, namespace }: Series): object {
    const { kind, uid } = about;
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name, namespace },
      eventTime: microTime(this.#options.clock.now()),
      reportingController: 'pvescaler.dev/pvescaler',
      reportingInstance: this.#options.instance.slice(0, LONGEST_REASON),
      action: reason.slice(0, LONGEST_REASON),
      reason: reason.slice(0, LONGEST_REASON),
      type,
      note: message.slice(0, LONGEST_NOTE),
      regarding: {
        apiVersion: 'v1',
        kind,
        name: about.name,
        ...(about.namespace !== undefined && { namespace: about.namespace }),
        ...(uid !== undefined && { uid }),
      },
    };
  }
}

function pathOfEvents(namespace: string): string {
  return pathOf('apis', 'events.k8s.io', 'v1', 'namespaces', namespace, 'events');
}

function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
