// SPDX-License-Identifier: Apache-2.0
// Prometheus metrics for the entries of the metric table, in a separate registry.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { Bug } from '../ports/errors.ts';
import type { Meters } from '../ports/meters.ts';
import { METRIC_NAMES, METRICS, type MetricName } from '../ports/metric-table.ts';

export interface Metrics extends Meters {
  readonly contentType: string;
  /** Returns the Prometheus text format. */
  read(): Promise<string>;
}

interface MetricsOptions {
  /** Adds the default metrics of the Node.js process: `process_…`, `nodejs_…`. */
  readonly includeProcess: boolean;
}

type Instrument = Counter | Gauge | Histogram;

export function createMetrics({ includeProcess }: MetricsOptions): Metrics {
  const registry = new Registry();
  const instruments = new Map<MetricName, Instrument>();
  for (const name of METRIC_NAMES) instruments.set(name, createInstrument(name, registry));
  if (includeProcess) collectDefaultMetrics({ register: registry });
  return {
    contentType: registry.contentType,
    read: () => registry.metrics(),
    add: (name, labels, by = 1) =>
      findInstrument(instruments, name, Counter).inc({ ...labels }, by),
    observe: (name, labels, seconds) =>
      findInstrument(instruments, name, Histogram).observe({ ...labels }, seconds),
    set(name, values) {
      const gauge = findInstrument(instruments, name, Gauge);
      gauge.reset();
      for (const { labels, value } of values) gauge.set({ ...labels }, value);
    },
  };
}

function createInstrument(name: MetricName, registry: Registry): Instrument {
  const { type, help, labels } = METRICS[name];
  const settings = { name, help, labelNames: [...labels], registers: [registry] };
  if (type === 'counter') return new Counter(settings);
  if (type === 'gauge') return new Gauge(settings);
  return new Histogram({ ...settings, buckets: [...METRICS[name].buckets] });
}

function findInstrument<T extends Instrument>(
  instruments: ReadonlyMap<MetricName, Instrument>,
  name: MetricName,
  kind: abstract new (...args: never[]) => T,
): T {
  const found = instruments.get(name);
  if (found instanceof kind) return found;
  throw new Bug('BUG', `${name} is not a ${kind.name}`);
}
