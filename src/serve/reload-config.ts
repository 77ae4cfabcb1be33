// SPDX-License-Identifier: Apache-2.0
// Validates a changed config as a whole, applies it or refuses it as a whole, and reports which. A refused one changes
// nothing. Another source of pools than the file can use `apply` in the same way.
import {
  type ConfigChanges,
  compareConfigs,
  describePlannedKey,
  type LoadedConfig,
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
  readonly source: Pick<ConfigSource, 'path' | 'load'>;
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
const LIMITATION = 'config';

interface Refusal {
  readonly outcome: 'invalid' | 'restart' | 'failed';
  readonly why: string;
}

export class ConfigReloader {
  readonly #options: ReloaderOptions;
  #lastRefusal: string | undefined;

  constructor(options: ReloaderOptions) {
    this.#options = options;
    this.#setGauges(true);
  }

  async reload(content: Content, isRequested: boolean): Promise<ReloadOutcome> {
    const next = await this.#load(content);
    if ('why' in next) return this.#refuse(next);
    const changes = compareConfigs(this.#options.current().file, next.file);
    const needRestart = [...changes.needRestart, ...this.#options.findRestartKeys(next)];
    if (needRestart.length > 0) return this.#refuse(restartNeeded(needRestart));
    if (changes.keys.length === 0 && !isRequested) return this.#recordUnchanged();
    return this.#apply(next, changes);
  }

  async #load(content: Content): Promise<LoadedConfig | Refusal> {
    if (content.kind === 'unreadable') return { outcome: 'invalid', why: content.message };
    try {
      const loaded = await this.#options.source.load(content.text);
      if (loaded.ok) return loaded;
      const errors = loaded.problems.filter(({ severity }) => severity === 'error');
      return { outcome: 'invalid', why: listed(errors.map((one) => renderProblems([one]).trim())) };
    } catch (error) {
      return { outcome: 'invalid', why: asPvescalerError(error).message };
    }
  }

  async #apply(next: LoadedConfig, { keys }: ConfigChanges): Promise<ReloadOutcome> {
    const { apply, source } = this.#options;
    this.#warn(next);
    try {
      await apply(next);
    } catch (error) {
      await this.#refuse({ outcome: 'failed', why: asPvescalerError(error).message });
      return 'retry';
    }
    this.#succeed('applied');
    const what = keys.length === 0 ? 'no key has changed' : `changed: ${listed(keys)}`;
    await this.#record('did', 'ConfigApplied', `config file ${source.path} applied; ${what}`);
    return 'done';
  }

  #recordUnchanged(): ReloadOutcome {
    const { log, source } = this.#options;
    const wasRefused = this.#lastRefusal !== undefined;
    this.#succeed('unchanged');
    const text = wasRefused ? 'is valid again and has the settings in use' : 'changes no setting';
    log.info(`config file ${source.path} ${text}`);
    return 'done';
  }

  #succeed(outcome: 'applied' | 'unchanged'): void {
    const { meters, watchdog } = this.#options;
    this.#lastRefusal = undefined;
    meters.add('pvescaler_config_reloads_total', { outcome });
    this.#setGauges(true);
    watchdog.setLimitation(LIMITATION, undefined);
  }

  /** A retry with the same outcome is reported once. */
  async #refuse({ outcome, why }: Refusal): Promise<ReloadOutcome> {
    const { meters, watchdog, source } = this.#options;
    meters.add('pvescaler_config_reloads_total', { outcome });
    this.#setGauges(false);
    const message = `config file ${source.path} not applied, the settings in use stay: ${why}`;
    watchdog.setLimitation(LIMITATION, message);
    if (this.#lastRefusal === message) return 'done';
    this.#lastRefusal = message;
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
