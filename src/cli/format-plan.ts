// SPDX-License-Identifier: Apache-2.0
// A plan and an explanation as text.
import { formatCount } from '../model/format-text.ts';
import type { Explanation, Plan, Refusal, Step, SubjectKind } from '../scaling/index.ts';

/** How many refusals of one kind and code are shown. */
const MAX_SHOWN = 5;

export interface PlanFormat {
  /** Shows every refusal. */
  readonly all?: boolean;
}

export function formatPlan(plan: Plan, { all = false }: PlanFormat = {}): string {
  const { counts, steps, refusals } = plan;
  const lines = [
    `${new Date(plan.at).toISOString()}: ${formatCount(counts.nodes, 'node')}, ${formatCounts(plan)}`,
    '',
    ...(steps.length === 0 ? ['Nothing to do.'] : steps.flatMap(formatStep)),
    ...formatRefusals(refusals, all),
  ];
  return `${lines.join('\n')}\n`;
}

/** What the steps change: the pool of new machines, or the machine. */
export function stepNames({ steps }: Plan): readonly string[] {
  return steps.map((step) => {
    if (step.kind === 'create') return step.pool;
    return step.kind === 'drain' ? step.node : step.machine;
  });
}

function formatCounts({ counts }: Plan): string {
  const { pending, fitExisting, fitProvisioning, fitNew, unplaced, unneeded } = counts;
  const parts = [
    [fitExisting, 'fit on nodes'],
    [fitProvisioning, 'fit on machines being provisioned'],
    [fitNew, 'need new machines'],
    [unplaced, 'get no machine'],
  ] as const;
  const shown = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  const detail = shown.length === 0 ? '' : ` (${shown.join(', ')})`;
  return `${formatCount(pending, 'pending pod')}${detail}, ${formatCount(unneeded, 'unneeded machine')}`;
}

function formatStep(step: Step): readonly string[] {
  const place = step.kind === 'create' && step.host !== undefined ? ` on host ${step.host}` : '';
  const moves =
    step.kind === 'drain'
      ? step.moves.map(({ pod, to }) => `         ${pod.namespace}/${pod.name} → ${to}`)
      : [];
  return [`${step.kind.padEnd(8)} ${step.reason}${place}`, ...moves];
}

const TITLES: Readonly<Record<SubjectKind, string>> = {
  pod: 'Pods without a machine',
  pool: 'Pools',
  host: 'Hosts',
  node: 'Nodes that are kept',
  cluster: 'Cluster',
};

function formatRefusals(refusals: readonly Refusal[], all: boolean): readonly string[] {
  const kinds = ['cluster', 'pod', 'pool', 'host', 'node'] as const;
  return kinds.flatMap((kind) => {
    const found = refusals.filter(({ subject }) => subject.kind === kind);
    if (found.length === 0) return [];
    const groups = [...Map.groupBy(found, ({ code }) => code).values()];
    return ['', `${TITLES[kind]}:`, ...groups.flatMap((group) => formatGroup(group, all))];
  });
}

function formatGroup(group: readonly Refusal[], all: boolean): readonly string[] {
  const shown = all ? group : group.slice(0, MAX_SHOWN);
  const more = group.length - shown.length;
  const lines = shown.map(({ reason }) => `  ${reason}`);
  if (more === 0) return lines;
  return [...lines, `  and ${more} more for the same reason (--all shows them)`];
}

export function formatExplanation({ subject, lines }: Explanation): string {
  const title = `${subject.kind} ${subject.name}`;
  return `${[title, ...lines.map(({ text }) => `  ${text}`)].join('\n')}\n`;
}
