// SPDX-License-Identifier: Apache-2.0
// Validates a changed config as a whole, applies it or refuses it as a whole, and reports which. A refused one changes
// nothing. Another source of pools than the file can use `apply` in the same way.
import {
  type ConfigChanges,
  compareConfigs,
  describePlannedKey,
  type LoadedConfig,
  type LoadResult,
  renderProblems,
} from '../config/index.ts';
import type { JournalKind } from '../model/journal-entry.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import { asPvescalerError } from '../ports/errors.ts';
import type { Journal } from '../ports/journal.ts';
import type { Log } from '../ports/log.ts';
import type { Meters } from '../ports/meters.ts';
import type { ConfigSource, Content, ReloadOutcome } from './config-watcher.ts';
import type { Watchdog } from './watchdog.ts';

export interface ReloaderOptions {
  readonly source: Pick<ConfigSource, 'path'>;
  /** Validates the text of the file together with everything else that settings come from. */
  readonly load: (text: string | undefined) => Promise<LoadResult>;
  /** Of the file in use. */
  readonly text: string | undefined;
  /** The config in use. */
  readonly current: () => LoadedConfig;
  /** Keys of `next` beyond those of the schema that this process cannot change. */
  readonly findRestartKeys: (next: LoadedConfig) => readonly string[];
  /** Reads what `next` refers to, then replaces the settings of all parts. An error leaves them as they are. */
  readonly apply: (next: LoadedConfig) => Promise<void>;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly cluster: Cluster | undefined;
  readonly log: Log;
  readonly meters: Meters;
  readonly watchdog: Pick<Watchdog, 'setLimitation'>;
}

/** In one message. */
const MAX_LISTED = 10;

interface Refusal {
  readonly outcome: 'invalid' | 'restart' | 'failed';
  readonly why: string;
}

/** What has changed. */
interface Cause {
  /** For messages. */
  readonly subject: string;
  /** In `/readyz`. */
  readonly limitation: string;
}

const POOL_OBJECTS: Cause = { subject: 'ProxmoxPool objects', limitation: 'pool objects' };

export class ConfigReloader {
  readonly #options: ReloaderOptions;
  readonly #lastRefusals = new Map<Cause, string>();
  readonly #file: Cause;
  /** Of the file in use. */
  #text: string | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: ReloaderOptions) {
    this.#options = options;
    this.#text = options.text;
    this.#file = { subject: `config file ${options.source.path}`, limitation: 'config' };
    this.#setGauges(true);
  }

  reload(content: Content, isRequested: boolean): Promise<ReloadOutcome> {
    return this.#serialized(async () => {
      if (content.kind === 'unreadable')
        return this.#refuse(this.#file, { outcome: 'invalid', why: content.message });
      const outcome = await this.#reload(this.#file, content.text, isRequested);
      const isRefused = this.#lastRefusals.has(this.#file);
      if (!isRefused) this.#text = content.text;
      // What was refused may have other pools: objects are judged by the file in use again.
      else await this.#load(this.#text);
      return outcome;
    });
  }

  /** Applies the pool objects as they are now, with the file in use: a file that was refused holds up no pool object. */
  reloadPools(): Promise<ReloadOutcome> {
    return this.#serialized(() => this.#reload(POOL_OBJECTS, this.#text, false));
  }

  #serialized(work: () => Promise<ReloadOutcome>): Promise<ReloadOutcome> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  // oxlint-disable-next-line max-params -- what has changed, its text, and whether a person asked for it
  async #reload(
    cause: Cause,
    text: string | undefined,
    isRequested: boolean,
  ): Promise<ReloadOutcome> {
    const next = await this.#load(text);
    if ('why' in next) return this.#refuse(cause, next);
    const changes = compareConfigs(this.#options.current().file, next.file);
    const needRestart = [...changes.needRestart, ...this.#options.findRestartKeys(next)];
    if (needRestart.length > 0) return this.#refuse(cause, restartNeeded(needRestart));
    if (changes.keys.length === 0 && !isRequested) return this.#recordUnchanged(cause);
    return this.#apply(cause, next, changes);
  }

  async #load(text: string | undefined): Promise<LoadedConfig | Refusal> {
    try {
      const loaded = await this.#options.load(text);
      if (loaded.ok) return loaded;
      const errors = loaded.problems.filter(({ severity }) => severity === 'error');
      return { outcome: 'invalid', why: listed(errors.map((one) => renderProblems([one]).trim())) };
    } catch (error) {
      return { outcome: 'invalid', why: asPvescalerError(error).message };
    }
  }

  async #apply(cause: Cause, next: LoadedConfig, { keys }: ConfigChanges): Promise<ReloadOutcome> {
    this.#warn(next);
    try {
      await this.#options.apply(next);
    } catch (error) {
      await this.#refuse(cause, { outcome: 'failed', why: asPvescalerError(error).message });
      return 'retry';
    }
    this.#succeed(cause, 'applied');
    const what = keys.length === 0 ? 'no key has changed' : `changed: ${listed(keys)}`;
    await this.#record('did', 'ConfigApplied', `${cause.subject} applied; ${what}`);
    return 'done';
  }

  #recordUnchanged(cause: Cause): ReloadOutcome {
    const { log } = this.#options;
    const wasRefused = this.#lastRefusals.has(cause);
    this.#succeed(cause, 'unchanged');
    const text = wasRefused ? 'is valid again and has the settings in use' : 'changes no setting';
    if (cause === this.#file) log.info(`${cause.subject} ${text}`);
    return 'done';
  }

  /** With the file, the pool objects are applied, too. */
  #succeed(cause: Cause, outcome: 'applied' | 'unchanged'): void {
    const { meters, watchdog } = this.#options;
    meters.add('pvescaler_config_reloads_total', { outcome });
    for (const each of new Set([cause, POOL_OBJECTS])) {
      this.#lastRefusals.delete(each);
      watchdog.setLimitation(each.limitation, undefined);
    }
    this.#setGauges(this.#lastRefusals.size === 0);
  }

  /** A retry with the same outcome is reported once. */
  async #refuse(cause: Cause, { outcome, why }: Refusal): Promise<ReloadOutcome> {
    const { meters, watchdog } = this.#options;
    meters.add('pvescaler_config_reloads_total', { outcome });
    this.#setGauges(false);
    const message = `${cause.subject} not applied, the settings in use stay: ${why}`;
    watchdog.setLimitation(cause.limitation, message);
    if (this.#lastRefusals.get(cause) === message) return 'done';
    this.#lastRefusals.set(cause, message);
    await this.#record('refused', 'ConfigRefused', message);
    return 'done';
  }

  #setGauges(isSuccess: boolean): void {
    const { meters, clock } = this.#options;
    const value = Number(isSuccess);
    meters.set('pvescaler_config_last_reload_successful', [{ labels: {}, value }]);
    if (!isSuccess) return;
    meters.set('pvescaler_config_last_reload_success_timestamp_seconds', [
      { labels: {}, value: clock.now() / 1_000 },
    ]);
  }

  /** Warnings that the config in use does not cause. */
  #warn(next: LoadedConfig): void {
    const known = new Set(warningsOf(this.#options.current()));
    for (const warning of warningsOf(next))
      if (!known.has(warning)) this.#options.log.warn(warning);
  }

  /** The journal logs its entries. */
  async #record(kind: JournalKind, reason: string, message: string): Promise<void> {
    const { journal, cluster, clock, current, log } = this.#options;
    const { namespace } = current().config.cluster;
    const entry = { at: clock.now(), kind, subject: {}, reason, message };
    await journal.append(entry).catch(() => {
      log[kind === 'refused' ? 'error' : 'info'](message, { reason });
    });
    await cluster
      ?.emit({
        regarding: { kind: 'Namespace', name: namespace },
        type: kind === 'refused' ? 'Warning' : 'Normal',
        reason,
        message,
      })
      .catch(() => undefined);
  }
}

function restartNeeded(keys: readonly string[]): Refusal {
  const why = `${listed(keys)} cannot change while pvescaler runs; restart it to apply the file`;
  return { outcome: 'restart', why };
}

function listed(items: readonly string[]): string {
  const more = items.length - MAX_LISTED;
  return `${items.slice(0, MAX_LISTED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function warningsOf({ problems, planned }: LoadedConfig): readonly string[] {
  return [
    ...problems.map((problem) => renderProblems([problem]).trim()),
    ...planned.map(describePlannedKey),
  ];
}
