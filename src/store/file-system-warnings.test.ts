// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { fileSystemWarnings, networkWarnings } from './file-system-warnings.ts';

describe('file system warnings', () => {
  it('name a network file system', () => {
    expect(networkWarnings('/mnt/state.db', 0x6969)[0]).toContain('(NFS)');
    expect(networkWarnings('/mnt/state.db', 0xef53)).toEqual([]);
  });

  it('are empty when the file system cannot be determined', async () => {
    expect(await fileSystemWarnings('/no/such/folder/state.db')).toEqual([]);
    expect(await fileSystemWarnings('/proc/state.db')).toEqual([]);
  });
});
