// SPDX-License-Identifier: Apache-2.0
import { paint } from './colors.ts';

interface TableOptions {
  /** Columns of the terminal: the last cell of a row is wrapped to fit. Undefined: one line per row. */
  readonly width?: number | undefined;
  readonly hasBoldHead?: boolean;
}

/** With less room the last cell is written below its row. */
const MIN_LAST_CELL = 20;
const INDENT = 4;

/** Columns separated by two spaces and no borders, so that `awk` can read the table. */
export function formatTable(
  rows: readonly (readonly string[])[],
  { width, hasBoldHead = false }: TableOptions = {},
): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  const start = widths.slice(0, -1).reduce((sum, cell) => sum + cell + 2, 0);
  return rows
    .map((row, index) => {
      const cells = row.slice(0, widths.length - 1);
      const before = cells.map((cell, column) => `${cell.padEnd(widths[column] ?? 0)}  `).join('');
      const last = row[widths.length - 1] ?? '';
      const line = before + (width === undefined ? last : wrapCell(last, start, width));
      return `${paint(line.trimEnd(), hasBoldHead && index === 0 ? 'bold' : undefined)}\n`;
    })
    .join('');
}

function wrapCell(text: string, start: number, width: number): string {
  if (start + text.length <= width) return text;
  const isBelow = width - start < MIN_LAST_CELL;
  const indent = isBelow ? INDENT : start;
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && indent + last.length + 1 + word.length <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else lines.push(word);
  }
  const separator = `\n${' '.repeat(indent)}`;
  return (isBelow ? separator : '') + lines.join(separator);
}
