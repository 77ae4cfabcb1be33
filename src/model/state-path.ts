// SPDX-License-Identifier: Apache-2.0
// Whether a path is a place for state that must outlive a restart.

const ALWAYS_TEMPORARY = ['/tmp', '/var/tmp', '/dev/shm', '/run'];

/** Why the database should not be there; undefined when nothing speaks against it. */
export function stateFolderProblem(
  path: string,
  tempFolders: readonly string[],
): string | undefined {
  const folder = [...ALWAYS_TEMPORARY, ...tempFolders]
    .map((name) => name.replace(/\/+$/, ''))
    .find((name) => name !== '' && path.startsWith(`${name}/`));
  return folder === undefined
    ? undefined
    : `${folder} may be emptied at any time, and what pvescaler has begun would be forgotten; use a lasting folder`;
}
