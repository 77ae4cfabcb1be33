// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { stateFolderProblem } from './state-path.ts';

describe('stateFolderProblem', () => {
  it.each([
    ['/tmp/state.db', '/tmp'],
    ['/var/tmp/a/b/state.db', '/var/tmp'],
    ['/dev/shm/state.db', '/dev/shm'],
    ['/run/pvescaler/state.db', '/run'],
    ['/var/lib/../../tmp/./state.db', '/tmp'],
    ['/scratch/u/state.db', '/scratch/u/'],
  ])('rejects %s', (path, folder) => {
    expect(stateFolderProblem(path, ['/scratch/u/'])).toMatch(
      new RegExp(`^${folder} may be emptied`),
    );
  });

  it.each(['/var/lib/pvescaler/state.db', '/tmpfiles/state.db', '/srv/tmp/state.db', '/tmp'])(
    'accepts %s',
    (path) => {
      expect(stateFolderProblem(path, ['', '/'])).toBeUndefined();
    },
  );
});
