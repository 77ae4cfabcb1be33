// SPDX-License-Identifier: Apache-2.0
// Whether a path is a place for state that must outlive a restart.

/** Emptied at a reboot, or by a nightly cleaner. */
const ALWAYS_TEMPORARY = ['/tmp', '/var/tmp', '/dev/shm', '/run', '/var/run'];

/** Why the database should not be there; undefined when nothing speaks against it. */
export function stateFolderProblem(
  path: string,
  tempFolders: readonly string[],
): string | undefined {
  const steps = stepsOf(path);
  const folder = [...ALWAYS_TEMPORARY, ...tempFolders].find((name) =>
    isInside(steps, stepsOf(name)),
  );
  return folder === undefined
    ? undefined
    : `${folder} may be emptied at any time, and what pvescaler has begun would be forgotten; use a lasting folder such as /var/lib/pvescaler`;
}

function stepsOf(path: string): readonly string[] {
  const steps: string[] = [];
  for (const step of path.split('/')) {
    if (step === '..') steps.pop();
    else if (step !== '' && step !== '.') steps.push(step);
  }
  return steps;
}

function isInside(path: readonly string[], folder: readonly string[]): boolean {
  return (
    folder.length > 0 &&
    path.length > folder.length &&
    folder.every((step, index) => path[index] === step)
  );
}
