// SPDX-License-Identifier: Apache-2.0
// The result of a command in the format of `--output`.
import type { CommandHost } from './context.ts';
import { formatTable } from './format-table.ts';
import type { OutputOptions } from './output-option.ts';

/** Formats rows for the terminal or the pipe that the result is written to. */
export interface TableFormat {
  /** Rows under a header. */
  table(head: readonly string[], rows: readonly (readonly string[])[]): string;
  /** Names and values, without a header. */
  fields(rows: readonly (readonly string[])[]): string;
}

export interface PrintedObjects {
  /** For JSON and YAML. */
  readonly value: unknown;
  /** One per object, for scripts. */
  readonly names: readonly string[];
  /** For people. */
  readonly text: (format: TableFormat) => string;
  /** Whether more may follow: a reader then takes one line of JSON, or one document of YAML, at a time. */
  readonly isStream?: boolean;
}

export async function printObjects(
  host: CommandHost,
  { output = 'table' }: OutputOptions,
  { value, names, text, isStream = false }: PrintedObjects,
): Promise<void> {
  host.context.out(await render());

  async function render(): Promise<string> {
    switch (output) {
      case 'json':
        return `${JSON.stringify(withIsoTimes(value), null, isStream ? 0 : 2)}\n`;
      case 'yaml':
        return (isStream ? '---\n' : '') + (await toYaml(value));
      case 'name':
        return names.map((name) => `${name}\n`).join('');
      case 'table':
        return text(tableFormat(host));
    }
  }
}

export function tableFormat({ context, colors }: CommandHost): TableFormat {
  return {
    table: (head, rows) =>
      formatTable([head, ...rows], { width: context.columns, hasBoldHead: colors.out }),
    fields: (rows) => formatTable(rows),
  };
}

async function toYaml(value: unknown): Promise<string> {
  const { formatYaml } = await import('./format-yaml.ts');
  return formatYaml(withIsoTimes(value));
}

/** Fields that hold a wall clock in milliseconds, alone or by name. */
const TIME_KEY = /(?:At|Since|Until|Times)$|^(?:at|since|until)$/;

/** Records store milliseconds; people and other programs read ISO 8601. */
export function withIsoTimes(value: unknown, isTime = false): unknown {
  if (typeof value === 'number') return isTime ? new Date(value).toISOString() : value;
  if (Array.isArray(value)) return value.map((item: unknown) => withIsoTimes(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [
      key,
      withIsoTimes(child, TIME_KEY.test(key) || (isTime && typeof child === 'number')),
    ]),
  );
}
