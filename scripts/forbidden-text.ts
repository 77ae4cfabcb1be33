// SPDX-License-Identifier: Apache-2.0
// Finds text that must not be in the repository and that no linter finds: the path of this checkout, host names of
// package registries (the lock file must work with any registry), merge conflict markers, direct reads of the clock.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface ForbiddenText {
  readonly pattern: RegExp;
  readonly why: string;
  /** Files in which it is forbidden; absent = all. */
  readonly where?: RegExp;
}

const FORBIDDEN_TEXTS: readonly ForbiddenText[] = [
  {
    pattern: /new Date\(\s*\)/,
    why: 'reads the clock directly; use the Clock port',
    where: /^src\/(?!system\/|main\.ts$)/,
  },
  {
    pattern:
      /registry\.npm(?:js|mirror)\.(?:org|com)|proxy\.golang\.org|deb\.debian\.org|pypi\.org/,
    why: 'names a package registry',
  },
  { pattern: /^(?:<{7}|>{7}) /m, why: 'contains a merge conflict marker' },
];

/** This file contains the patterns itself. */
const EXEMPT = new Set(['scripts/forbidden-text.ts', 'LICENSE']);

export async function findForbiddenText(root: string): Promise<readonly string[]> {
  const listed = spawnSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard'],
    { cwd: root, encoding: 'utf8' },
  );
  if (listed.status !== 0) return [`git ls-files failed: ${listed.stderr}`];
  const files = listed.stdout.split('\0').filter((path) => path !== '' && !EXEMPT.has(path));
  if (files.length === 0) return ['git ls-files lists no file'];
  const here = {
    pattern: new RegExp(`${RegExp.escape(root)}\\b`),
    why: 'contains the path of this checkout',
  };
  return files.flatMap((path) => findInFile(root, path, [...FORBIDDEN_TEXTS, here]));
}

function findInFile(root: string, path: string, forbidden: readonly ForbiddenText[]): string[] {
  let text: string;
  try {
    text = readFileSync(join(root, path), 'utf8');
  } catch {
    return []; // deleted in the work tree
  }
  if (text.includes('\0')) return [];
  return forbidden.flatMap(({ pattern, why, where }) => {
    if (where?.test(path) === false) return [];
    const at = text.search(pattern);
    return at < 0 ? [] : [`${path}:${text.slice(0, at).split('\n').length}: ${why}`];
  });
}
