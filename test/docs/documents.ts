// SPDX-License-Identifier: Apache-2.0
// The documentation as data: its files, their headings and their code blocks.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/pvescaler.ts';

export interface CodeBlock {
  readonly language: string;
  /** Without the indentation of the block. */
  readonly text: string;
  /** `file:line` of its first line. */
  readonly at: string;
  readonly heading: string;
}

export interface Document {
  /** Relative to the root of the repository. */
  readonly file: string;
  readonly text: string;
  /** The text outside of code blocks. */
  readonly prose: string;
  readonly headings: readonly string[];
  readonly blocks: readonly CodeBlock[];
}

const PATTERNS = ['README.md', 'CONTRIBUTING.md', '{deploy,examples}/**/*.md', 'docs/**/*.md'];

export const DOCUMENTS: readonly Document[] = PATTERNS.flatMap((pattern) =>
  globSync(pattern, { cwd: root }),
)
  .toSorted()
  .map(readDocument);

export function readDocument(file: string): Document {
  return parseDocument(file, readFileSync(join(root, file), 'utf8'));
}

/** The `sh` blocks of a section, named `file#heading`. */
export function readSection(at: string): string {
  const [file = '', heading] = at.split('#');
  const blocks = readDocument(file).blocks.filter(
    (block) => block.heading === heading && block.language === 'sh',
  );
  if (blocks.length === 0) throw new Error(`${at} has no commands`);
  return blocks.map(({ text }) => text).join('');
}

export function parseDocument(file: string, text: string): Document {
  const headings: string[] = [];
  const blocks: CodeBlock[] = [];
  const prose: string[] = [];
  const lines = text.split('\n');
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    const [, indent = '', language] = /^( *)```([a-z]*)$/.exec(line) ?? [];
    if (language === undefined) {
      const [, heading] = /^#+ (.*)$/.exec(line) ?? [];
      if (heading !== undefined) headings.push(heading);
      prose.push(line);
      continue;
    }
    const end = lines.indexOf(`${indent}\`\`\``, index + 1);
    if (end < 0) throw new Error(`${file}:${index + 1}: the code block has no end`);
    const content = lines.slice(index + 1, end).map((one) => one.slice(indent.length));
    blocks.push({
      language,
      text: `${content.join('\n')}\n`,
      at: `${file}:${index + 2}`,
      heading: headings.at(-1) ?? '',
    });
    index = end;
  }
  return { file, text, prose: prose.join('\n'), headings, blocks };
}

/** The id that GitHub gives a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{Letter}\p{Number}_ -]/gu, '')
    .replaceAll(' ', '-');
}
