// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { RemoteResult, RemoteShell } from '../../ports/remote-shell.ts';
import { PveshTransport } from './transport.ts';

describe('the name of a host', () => {
  it('is read again after a command that a signal ended', async () => {
    const results: RemoteResult[] = [
      { exitCode: undefined, output: '', errorOutput: '' },
      { exitCode: 0, output: 'pve1\n', errorOutput: '' },
    ];
    const shell = {
      address: '10.0.0.1',
      run: () => Promise.resolve(results.shift() ?? { exitCode: 0, output: '{}', errorOutput: '' }),
    } as unknown as RemoteShell;
    const transport = new PveshTransport([{ hostname: '10.0.0.1', port: 22, shell }]);
    const read = () =>
      transport.request({
        method: 'GET',
        url: 'ssh://10.0.0.1:22/api2/json/nodes/pve1/status',
        headers: {},
        timeoutMs: 1_000,
      });
    expect((await read()).status).toBe(595);
    expect((await read()).status).toBe(200);
  });
});
