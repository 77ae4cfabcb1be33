// SPDX-License-Identifier: Apache-2.0
// Checks whether a path is suitable for state that must survive a reboot.

/** Emptied at a reboot or by a periodic cleanup. */
const ALWAYS_TEMPORARY = ['/tmp', '/var/tmp', '/dev/shm', '/run', '/var/run'];

/** Why the database must not be stored there. Undefined when the path is suitable. */
export function stateFolderProblem(
  path: string,
  tempFolders: readonly string[],
): string | undefined {
  const segments = pathSegments(path);
  const folder = [...ALWAYS_TEMPORARY, ...tempFolders].find((name) =>
    isInside(segments, pathSegments(name)),
  );
  return folder === undefined
    ? undefined
    : `${folder} may be emptied at any time, and pvescaler would lose its record of creations in progress; use a persistent directory such as /var/lib/pvescaler`;
}

function pathSegments(path: string): readonly string[] {
  const segments: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') segments.pop();
    else if (segment !== '' && segment !== '.') segments.push(segment);
  }
  return segments;
}

function isInside(path: readonly string[], folder: readonly string[]): boolean {
  return (
    folder.length > 0 &&
    path.length > folder.length &&
    folder.every((segment, index) => path[index] === segment)
  );
}
