// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { printConsole } from './vm-access.ts';

it('prints the console of a VM in a region over SSH', async () => {
  const placement = { region: 'lab', host: 'pve1', vmId: 700, name: 'web-1' };
  const machines = [{ id: 'a', pool: 'role:web', phase: 'ready', placement }];
  const transport = { kind: 'ssh', hosts: [{ hostname: '10.0.0.1', port: 22 }] };
  const open = {
    fleet: { status: () => Promise.resolve({ machines }) },
    config: { regions: { lab: { endpoints: [], transport } } },
  } as unknown as OpenFleet;
  const printed: string[] = [];
  const host = { context: { out: (text: string) => printed.push(text) } } as unknown as CommandHost;
  await printConsole(host, open, { text: 'web-1' });
  expect(printed.join('')).toMatch(/^https:\/\/10\.0\.0\.1:8006\/\?.*vmid=700/);
});
