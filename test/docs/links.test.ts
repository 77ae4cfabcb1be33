// SPDX-License-Identifier: Apache-2.0
// Links inside the repository lead to files and headings that exist, and every page can be reached from the index.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../support/pvescaler.ts';
import { anchorOf, DOCUMENTS, type Document, readDocument } from './documents.ts';

interface Link {
  /** Relative to the root of the repository. */
  readonly path: string;
  readonly anchor: string | undefined;
}

function linksOf({ file, prose }: Document): readonly Link[] {
  return [...prose.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)/g)].map(
    ([, to = '', anchor]) => ({
      path: to === '' ? file : normalize(join(dirname(file), to)),
      anchor,
    }),
  );
}

function isBroken({ path, anchor }: Link): boolean {
  if (!existsSync(join(root, path))) return true;
  if (anchor === undefined || !path.endsWith('.md')) return false;
  return !readDocument(path).headings.some((heading) => anchorOf(heading) === anchor);
}

it.each(DOCUMENTS.map((document) => [document.file, document] as const))(
  'the links of %s lead to files and headings that exist',
  (_file, document) => {
    const broken = linksOf(document).filter(isBroken);
    expect(broken.map(({ path, anchor }) => `${path}#${anchor ?? ''}`)).toEqual([]);
  },
);

it('no page has control characters', () => {
  const wrong = DOCUMENTS.filter(({ text }) => /(?!\n)\p{Cc}/u.test(text));
  expect(wrong.map(({ file }) => file)).toEqual([]);
});

it('the index of the documentation has a link to every page', () => {
  const linked = new Set(linksOf(readDocument('docs/README.md')).map(({ path }) => path));
  const pages = DOCUMENTS.map(({ file }) => file).filter((file) =>
    /^docs\/(?!adr\/|README)/.test(file),
  );
  expect(pages.filter((file) => !linked.has(file))).toEqual([]);
});

it('every picture of the dashboard is shown on a page, and has less than 300 kB', () => {
  const shown = new Set(DOCUMENTS.flatMap((document) => linksOf(document).map(({ path }) => path)));
  const pictures = readdirSync(join(root, 'docs/images')).map((name) => `docs/images/${name}`);
  expect(pictures.length).toBeGreaterThan(2);
  expect(pictures.filter((path) => !shown.has(path))).toEqual([]);
  for (const path of pictures) expect(statSync(join(root, path)).size).toBeLessThan(300_000);
});
