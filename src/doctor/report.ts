// SPDX-License-Identifier: Apache-2.0
// The report for people: grouped, at most 80 columns wide except for commands to copy.
import type { CheckResult } from './check.ts';

const WIDTH = 80;
const INDENT = ' '.repeat(11);

const LABELS = { ok: 'ok', warning: 'warning', failure: 'FAILURE', skipped: 'skipped' } as const;
const COLORS = { ok: 32, warning: 33, failure: 31, skipped: 90 } as const;

interface ReportOptions {
  readonly colors: boolean;
  /** Every check; else those that are ok are counted. */
  readonly all: boolean;
}

export type ReportStatus = 'ok' | 'warning' | 'failure';

/** The worst of the results. */
export function reportStatus(results: readonly CheckResult[]): ReportStatus {
  if (results.some(({ status }) => status === 'failure')) return 'failure';
  return results.some(({ status }) => status === 'warning') ? 'warning' : 'ok';
}

export function formatReport(results: readonly CheckResult[], options: ReportOptions): string {
  const groups = [...new Set(results.map(({ group }) => group))];
  const parts = groups.map((group) => {
    const lines = formatGroup(
      results.filter((result) => result.group === group),
      options,
    );
    return `${group}\n${lines.join('')}`;
  });
  return `${parts.join('\n')}\n${formatSummary(results)}\n`;
}

/** The ok and the skipped checks of one name are one line each, unless all are shown. */
function formatGroup(results: readonly CheckResult[], options: ReportOptions): readonly string[] {
  const names = [...new Set(results.map(({ name }) => name))];
  return names.flatMap((name) => {
    const named = results.filter((result) => result.name === name);
    const passed = named.filter(({ status }) => status === 'ok');
    const skipped = named.filter(({ status }) => status === 'skipped');
    const found = named.filter(({ status }) => status === 'warning' || status === 'failure');
    return [
      ...formatCounted(passed, named.length, options),
      ...found.map((result) => formatResult(result, options)),
      ...formatCounted(skipped, named.length, options),
    ];
  });
}

function formatCounted(
  results: readonly CheckResult[],
  total: number,
  options: ReportOptions,
): readonly string[] {
  const [first] = results;
  if (first === undefined || options.all || results.length === 1) {
    return results.map((result) => formatResult(result, options));
  }
  const reason = first.status === 'skipped' ? `: ${first.detail}` : '';
  const text = `${first.name}: ${results.length} of ${total}${reason}`;
  return [line(first.status, text, options)];
}

function formatResult(result: CheckResult, options: ReportOptions): string {
  const title = result.subject === undefined ? result.name : `${result.name} ${result.subject}`;
  if (result.status === 'ok' || result.status === 'skipped') {
    return line(result.status, `${title}: ${result.detail}`, options);
  }
  const [fix = '', ...commands] = result.fix.split('\n');
  return [
    line(result.status, `${title}: ${result.cause}`, options),
    wrap(`fix: ${fix}`, WIDTH - INDENT.length)
      .map((text) => `${INDENT}${text}\n`)
      .join(''),
    ...commands.map((command) => `${INDENT}  ${command}\n`),
  ].join('');
}

function line(status: keyof typeof LABELS, text: string, { colors }: ReportOptions): string {
  const label = `  ${LABELS[status].padEnd(INDENT.length - 2)}`;
  const shown = colors ? `\u001b[${COLORS[status]}m${label}\u001b[0m` : label;
  const [first = '', ...rest] = wrap(text, WIDTH - INDENT.length);
  return [`${shown}${first}\n`, ...rest.map((one) => `${INDENT}${one}\n`)].join('');
}

/** A word that is longer than a line, such as a fingerprint, stays whole. */
function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else lines.push(word);
  }
  return lines;
}

function formatSummary(results: readonly CheckResult[]): string {
  const count = (status: CheckResult['status']) =>
    results.filter((result) => result.status === status).length;
  const parts = [
    `${results.length} checks`,
    `${count('failure')} failed`,
    `${count('warning')} with warnings`,
    ...(count('skipped') === 0 ? [] : [`${count('skipped')} skipped`]),
  ];
  return parts.join(', ');
}
