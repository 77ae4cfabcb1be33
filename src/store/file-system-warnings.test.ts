// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { fileSystemWarnings, networkWarnings } from './file-system-warnings.ts';

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
