// SPDX-License-Identifier: Apache-2.0
// The metrics of the table, in a registry of their own; nothing that the table does not name can be measured.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { Bug } from '../ports/errors.ts';
import type { Meters } from '../ports/meters.ts';
import { METRIC_NAMES, METRICS, type MetricName } from '../ports/metric-table.ts';

export interface Metrics extends Meters {
  readonly contentType: string;
  /** The text that Prometheus reads. */
  read(): Promise<string>;
}

export interface MetricsOptions {
  /** Also what Node tells of the process: `process_…`, `nodejs_…`. */
  readonly ofProcess: boolean;
}

type Instrument = Counter | Gauge | Histogram;

export function createMetrics({ ofProcess }: MetricsOptions): Metrics {
  const registry = new Registry();
  const instruments = new Map<MetricName, Instrument>();
  for (const name of METRIC_NAMES) instruments.set(name, instrument(name, registry));
  if (ofProcess) collectDefaultMetrics({ register: registry });
  return {
    contentType: registry.contentType,
    read: () => registry.metrics(),
    add: (name, labels, by = 1) => of(instruments, name, Counter).inc({ ...labels }, by),
    observe: (name, labels, seconds) =>
      of(instruments, name, Histogram).observe({ ...labels }, seconds),
    set(name, values) {
      const gauge = of(instruments, name, Gauge);
      gauge.reset();
      for (const { labels, value } of values) gauge.set({ ...labels }, value);
    },
  };
}

function instrument(name: MetricName, registry: Registry): Instrument {
  const { type, help, labels } = METRICS[name];
  const facts = { name, help, labelNames: [...labels], registers: [registry] };
  if (type === 'counter') return new Counter(facts);
  if (type === 'gauge') return new Gauge(facts);
  return new Histogram({ ...facts, buckets: [...METRICS[name].buckets] });
}

function of<T extends Instrument>(
  instruments: ReadonlyMap<MetricName, Instrument>,
  name: MetricName,
  kind: abstract new (...args: never[]) => T,
): T {
  const found = instruments.get(name);
  if (found instanceof kind) return found;
  throw new Bug('BUG', `${name} is not a ${kind.name}`);
}
