// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { fileSystemWarnings, networkWarnings, storePathWarnings } from './path-warnings.ts';

describe('storePathWarnings', () => {
  it.each([
    ['/tmp/state.db', '/tmp'],
    ['/var/tmp/a/b/state.db', '/var/tmp'],
    ['/dev/shm/state.db', '/dev/shm'],
    ['/run/pvescaler/state.db', '/run'],
    ['/home/u/../../tmp/state.db', '/tmp'],
    ['/scratch/u/state.db', '/scratch/u'],
  ])('warns about %s', (path, folder) => {
    const [warning, ...others] = storePathWarnings(path, ['/scratch/u/']);
    expect(warning).toContain(`lies in ${folder},`);
    expect(others).toEqual([]);
  });

  it.each(['/var/lib/pvescaler/state.db', '/tmpfiles/state.db', '/home/tmp/state.db', '/tmp'])(
    'is silent about %s',
    (path) => expect(storePathWarnings(path, [])).toEqual([]),
  );
});

describe('a network file system', () => {
  it('is warned about by name', () => {
    expect(networkWarnings('/mnt/state.db', 0x6969)[0]).toContain('(NFS)');
    expect(networkWarnings('/mnt/state.db', 0xef53)).toEqual([]);
  });

  it('is not suspected where nothing can be asked', async () => {
    expect(await fileSystemWarnings('/no/such/folder/state.db')).toEqual([]);
    expect(await fileSystemWarnings('/proc/state.db')).toEqual([]);
  });
});
