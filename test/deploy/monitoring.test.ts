// SPDX-License-Identifier: Apache-2.0
// The alerts and the Grafana dashboard: every query is valid PromQL and names only metrics and labels that exist.
import { parser } from '@prometheus-io/lezer-promql';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { METRICS } from '../../src/ports/metric-table.ts';
import { type Loose, readManifest, readRepoFile } from './manifests.ts';

const ALERTS = 'deploy/chart/files/alerts.yaml';
const DASHBOARD = 'deploy/chart/files/grafana-dashboard.json';
const rules: readonly Loose[] = parse(readRepoFile(ALERTS)).groups.flatMap(
  (group: Loose) => group.rules,
);
const panels: readonly Loose[] = JSON.parse(readRepoFile(DASHBOARD)).panels;
const queries: readonly (readonly [string, string])[] = [
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }: Loose) => [title, expr.replaceAll('$pool', '.*')] as const),
  ),
];

interface Query {
  readonly isValid: boolean;
  readonly metrics: readonly string[];
  /** Of matchers, `by` and `without`. */
  readonly labels: readonly string[];
}

function readQuery(text: string): Query {
  const [metrics, labels]: [string[], string[]] = [[], []];
  let isValid = true;
  parser.parse(text).iterate({
    enter({ name, from, to, type, node }) {
      if (type.isError) isValid = false;
      const isMetric = name === 'Identifier' && node.parent?.name === 'VectorSelector';
      if (isMetric) metrics.push(text.slice(from, to));
      if (name === 'LabelName') labels.push(text.slice(from, to));
    },
  });
  return { isValid, metrics, labels };
}

/** The labels of a metric; undefined when it does not exist. */
function labelsOf(name: string): readonly string[] | undefined {
  const histogram = /^(.+)_(bucket|sum|count)$/.exec(name);
  const found = Object.entries(METRICS).find(([known, { type }]) =>
    histogram !== null && type === 'histogram' ? known === histogram[1] : known === name,
  )?.[1];
  if (found === undefined || (found.type === 'histogram' && histogram === null)) return undefined;
  return histogram?.[2] === 'bucket' ? [...found.labels, 'le'] : found.labels;
}

function problemsOf(text: string): readonly string[] {
  const { isValid, metrics, labels } = readQuery(text);
  const known = new Set(metrics.flatMap((name) => labelsOf(name) ?? []));
  return [
    ...(isValid ? [] : ['is not valid PromQL']),
    ...(metrics.length === 0 ? ['names no metric'] : []),
    ...metrics.filter((name) => labelsOf(name) === undefined).map((name) => `no metric ${name}`),
    ...labels.filter((name) => !known.has(name)).map((name) => `no label ${name}`),
  ];
}

describe('queries of alerts and dashboard', () => {
  it.each(queries)('%s: %s names only what exists', (_, query) => {
    expect(problemsOf(query)).toEqual([]);
  });

  it('would be found with a wrong metric, label or syntax', () => {
    expect(problemsOf('sum by (pool) (pvescaler_machine)')).toContain(
      'no metric pvescaler_machine',
    );
    expect(problemsOf('pvescaler_leader{node="a"}')).toEqual(['no label node']);
    expect(problemsOf('sum by (pool (pvescaler_machines)')).toContain('is not valid PromQL');
    expect(problemsOf('pvescaler_drain_duration_seconds > 1')).toEqual([
      'no metric pvescaler_drain_duration_seconds',
    ]);
  });
});

describe('the alerts', () => {
  it('cover what needs a person', () => {
    const metrics = new Set(rules.flatMap(({ expr }) => readQuery(expr).metrics));
    expect([...metrics]).toEqual(
      expect.arrayContaining([
        'pvescaler_proxmox_credentials_refused',
        'pvescaler_view_age_seconds',
        'pvescaler_pool_backoff_seconds',
        'pvescaler_pool_pause_seconds',
        'pvescaler_orphans',
        'pvescaler_pool_lost_machines',
        'pvescaler_machine_phase_age_seconds',
        'pvescaler_provisioning_duration_seconds_bucket',
      ]),
    );
  });

  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s has a severity, a summary with existing labels and what to do',
    (_, { expr, labels, annotations }) => {
      expect(['warning', 'critical']).toContain(labels.severity);
      expect(annotations.summary).toMatch(/\.$/);
      expect(annotations.description).toMatch(/\.$/);
      const named = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)];
      const kept = readQuery(expr).labels;
      for (const [, label] of named) expect(kept).toContain(label);
    },
  );

  it.each(rules.map(({ alert, expr }) => [alert, expr] as const))(
    '%s does not need a series that a counter has only after its first event',
    (_, expr) => {
      expect(expr).not.toMatch(/_total\{[^}]*\}\[\w+\]\)+ == 0/);
    },
  );

  it('are shipped as a PrometheusRule too', () => {
    const rule = readManifest('deploy/monitoring/prometheus-rule.yaml', 'PrometheusRule');
    expect(rule['spec']).toEqual(parse(readRepoFile(ALERTS)));
  });
});

describe('the Grafana dashboard', () => {
  it('has panels that do not overlap, within 24 columns', () => {
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from(
        { length: w * h },
        (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`,
      ),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...cells.map((cell) => Number.parseInt(cell, 10)))).toBeLessThan(24);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });

  it('shows the time per phase, orphans, free capacity and failures', () => {
    const metrics = queries.flatMap(([, query]) => readQuery(query).metrics);
    for (const name of [
      'pvescaler_provisioning_phase_duration_seconds_sum',
      'pvescaler_orphans',
      'pvescaler_host_free_memory_bytes',
      'pvescaler_host_free_cpus',
      'pvescaler_machine_failures_total',
    ])
      expect(metrics).toContain(name);
  });
});
