// SPDX-License-Identifier: Apache-2.0
// Writes Events for people who inspect a Node with kubectl. An Event must never cause a failure or a flood: a repeated
// one raises the count of its series, excess ones are dropped, and failed writes are reported but not retried.
import type { Clock } from '../../ports/clock.ts';
import type { ClusterEvent } from '../../ports/cluster.ts';
import { asPvescalerError, type PvescalerError } from '../../ports/errors.ts';
import type { Random } from '../../ports/random.ts';
import { type ApiClient, apiPath, FIELD_MANAGER } from '../api-client.ts';
import { formatMicroTime } from '../objects.ts';
import { translateStatus } from '../status.ts';
import { TokenBucket } from './token-bucket.ts';

const BURST = 25;
const REFILL_INTERVAL_MS = 5_000;
/** An equal Event within this time belongs to the same series. */
const SERIES_MS = 600_000;
const MAX_SERIES = 500;
const TIMEOUT_MS = 5_000;
/** Limits that the API server enforces. */
const MAX_NOTE_LENGTH = 1_024;
const MAX_REASON_LENGTH = 128;

interface Series {
  readonly name: string;
  readonly namespace: string;
  count: number;
  lastAt: number;
}

interface EventRecorderOptions {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  /** `reportingInstance` of the Events. */
  readonly instance: string;
  readonly onError: (error: PvescalerError) => void;
}

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #bucket: TokenBucket;
  /** Least recently used first. */
  readonly #series = new Map<string, Series>();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#bucket = new TokenBucket(options.clock, {
      burst: BURST,
      refillIntervalMs: REFILL_INTERVAL_MS,
    });
  }

  async emit(event: ClusterEvent, signal: AbortSignal): Promise<void> {
    const series = this.#findSeries(event);
    series.count += 1;
    series.lastAt = this.#options.clock.monotonic();
    if (!this.#bucket.take()) return;
    try {
      if (series.count > 1 && (await this.#updateCount(series, signal))) return;
      await this.#create(event, series, signal);
    } catch (error) {
      this.#options.onError(asPvescalerError(error));
    }
  }

  #findSeries({ regarding, type, reason, message }: ClusterEvent): Series {
    const key = JSON.stringify([
      regarding.kind,
      regarding.namespace,
      regarding.name,
      regarding.uid,
      type,
      reason,
      message,
    ]);
    const known = this.#series.get(key);
    this.#series.delete(key);
    const isCurrent =
      known !== undefined && this.#options.clock.monotonic() - known.lastAt < SERIES_MS;
    const series = isCurrent ? known : this.#newSeries(regarding);
    this.#series.set(key, series);
    const [oldest] = this.#series.keys();
    if (this.#series.size > MAX_SERIES && oldest !== undefined) this.#series.delete(oldest);
    return series;
  }

  #newSeries(about: ClusterEvent['regarding']): Series {
    const unique = Buffer.from(this.#options.random.bytes(8)).toString('hex');
    return {
      name: `${about.name}.${unique}`,
      // kubectl searches this namespace for Events about cluster-scoped objects.
      namespace: about.kind === 'Namespace' ? 'default' : (about.namespace ?? 'default'),
      count: 0,
      lastAt: 0,
    };
  }

  // oxlint-disable-next-line max-params -- the event, its series and the signal
  async #create(event: ClusterEvent, series: Series, signal: AbortSignal): Promise<void> {
    await this.#options.api.requestOrThrow({
      method: 'POST',
      path: eventsPath(series.namespace),
      query: { fieldManager: FIELD_MANAGER },
      body: this.#buildEvent(event, series),
      operation: 'create event',
      timeoutMs: TIMEOUT_MS,
      signal,
    });
  }

  /** False: the Event no longer exists. */
  async #updateCount({ name, namespace, count }: Series, signal: AbortSignal): Promise<boolean> {
    const operation = 'update event count';
    const result = await this.#options.api.request({
      method: 'PATCH',
      path: `${eventsPath(namespace)}/${encodeURIComponent(name)}`,
      query: { fieldManager: FIELD_MANAGER },
      contentType: 'application/merge-patch+json',
      body: { series: { count, lastObservedTime: formatMicroTime(this.#options.clock.now()) } },
      operation,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    if (result.ok) return true;
    if (result.status.code === 404) return false;
    throw translateStatus(result.status, operation);
  }

  #buildEvent(
    { regarding, type, reason, message }: ClusterEvent,
    { name, namespace }: Series,
  ): object {
    const { kind, uid } = regarding;
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name, namespace },
      eventTime: formatMicroTime(this.#options.clock.now()),
      reportingController: 'pvescaler.dev/pvescaler',
      reportingInstance: this.#options.instance.slice(0, MAX_REASON_LENGTH),
      action: reason.slice(0, MAX_REASON_LENGTH),
      reason: reason.slice(0, MAX_REASON_LENGTH),
      type,
      note: message.slice(0, MAX_NOTE_LENGTH),
      regarding: {
        apiVersion: kind === 'ProxmoxPool' ? 'pvescaler.dev/v1alpha1' : 'v1',
        kind,
        name: regarding.name,
        ...(regarding.namespace !== undefined && { namespace: regarding.namespace }),
        ...(uid !== undefined && { uid }),
      },
    };
  }
}

function eventsPath(namespace: string): string {
  return apiPath('apis', 'events.k8s.io', 'v1', 'namespaces', namespace, 'events');
}
