// SPDX-License-Identifier: Apache-2.0
// Keeps out of the repository what has no business there and what no linter sees: the path of this checkout, hosts
// of package registries (the lock file must work behind any mirror), merge leftovers, a clock read past its port.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Unwanted {
  readonly pattern: RegExp;
  readonly why: string;
  /** The files it is unwanted in; absent = everywhere. */
  readonly where?: RegExp;
}

const UNWANTED: readonly Unwanted[] = [
  {
    pattern: /new Date\(\s*\)/,
    why: 'the time comes from the Clock port',
    where: /^src\/(?!system\/|main\.ts$)/,
  },
  {
    pattern:
      /registry\.npm(?:js|mirror)\.(?:org|com)|proxy\.golang\.org|deb\.debian\.org|pypi\.org/,
    why: 'a package registry',
  },
  { pattern: /^(?:<{7}|>{7}) /m, why: 'a merge leftover' },
];

/** This file names what it looks for. */
const EXEMPT = new Set(['scripts/words.ts', 'LICENSE']);

export async function wordProblems(root: string): Promise<readonly string[]> {
  const listed = spawnSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard'],
    { cwd: root, encoding: 'utf8' },
  );
  if (listed.status !== 0) return [`git ls-files failed: ${listed.stderr}`];
  const files = listed.stdout.split('\0').filter((path) => path !== '' && !EXEMPT.has(path));
  if (files.length === 0) return ['git lists no file'];
  const here = {
    pattern: new RegExp(`${RegExp.escape(root)}\\b`),
    why: 'the path of this checkout',
  };
  return files.flatMap((path) => problemsIn(root, path, [...UNWANTED, here]));
}

function problemsIn(root: string, path: string, unwanted: readonly Unwanted[]): string[] {
  let text: string;
  try {
    text = readFileSync(join(root, path), 'utf8');
  } catch {
    return []; // deleted in the work tree
  }
  if (text.includes('\0')) return [];
  return unwanted.flatMap(({ pattern, why, where }) => {
    if (where?.test(path) === false) return [];
    const at = text.search(pattern);
    return at < 0 ? [] : [`${path}:${text.slice(0, at).split('\n').length}: ${why}`];
  });
}
