// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ApiVersion,
  type EndpointFact,
  endpointsOf,
} from '../../../proxmox/wire-facts/index.ts';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

const VALUES: Readonly<Record<string, string>> = {
  node: 'pve1',
  vmid: '100',
  storage: 'local',
  volume: 'iso/debian.iso',
  userid: 'weak@pve',
  tokenid: 'sep',
  poolid: 'mine',
  snapname: 'snap1',
  sid: 'vm:100',
  iface: 'vmbr0',
};

function fillPath(path: string): string {
  return path.replaceAll(/\{([^}]+)\}/g, (_, name: string) =>
    encodeURIComponent(VALUES[name] ?? 'xx'),
  );
}

function createHarness(version: ApiVersion): SimHarness {
  const cluster = { ...testCluster(2), pools: [{ id: 'mine' }], vms: [{ id: 100, host: 'pve1' }] };
  return new SimHarness({ cluster, version });
}

const isJson = (text: string) => text === '' || text.startsWith('{');

describe.each(['8.4', '9.2'] as const)('every endpoint of %s', (version) => {
  const rows: readonly EndpointFact[] = endpointsOf(version);

  it('refuses an unknown parameter, together with all other errors', async () => {
    for (const row of rows) {
      if (row.path.endsWith('/upload') || row.path.endsWith('/agent')) continue;
      // The user is checked before the parameters.
      const userid = row.params['userid'] === undefined ? {} : { userid: 'weak@pve' };
      const params = { 'no-such': '1', ...(row.path.includes('{userid}') ? {} : userid) };
      const response = await createHarness(version).call(row.method, fillPath(row.path), params);
      const about = `${row.method} ${row.path} ${response.status} ${response.reason}`;
      expect([400, 403], about).toContain(response.status);
      if (response.status === 400) {
        expect(response.errors?.['no-such'], about).toBe(
          'property is not defined in schema and the schema does not allow additional properties',
        );
      }
    }
  });

  it('responds with JSON to a caller without privileges and with 401 without credentials', async () => {
    for (const row of rows) {
      const sim = createHarness(version);
      sim.authorization = 'PVEAPIToken=weak@pve!sep=11111111-1111-4111-8111-111111111111';
      const response = await sim.call(row.method, fillPath(row.path));
      expect([200, 400, 403, 500, 501], `${row.method} ${row.path}`).toContain(response.status);
      expect(isJson(response.body)).toBe(true);
      if (row.path === '/access/ticket') continue;
      sim.authorization = '';
      expect((await sim.call(row.method, fillPath(row.path))).status).toBe(401);
    }
  });

  it('responds with a known status to random parameters', async () => {
    const text = fc.oneof(
      fc.constantFrom(
        '',
        '0',
        '1',
        '-1',
        'local:1',
        'local:iso/debian.iso',
        'local:iso/debian.iso,media=cdrom',
        'none',
        'pve2',
        '100',
        '101',
        'a=b,c',
        ',,',
        '=',
        'x'.repeat(300),
        'virtio,bridge=vmbr0',
        '\0',
        'ü',
      ),
      fc.string({ maxLength: 12 }),
    );
    const indexed = (name: string) => name.replace('[n]', '0');
    await fc.assert(
      fc.asyncProperty(
        fc.nat(rows.length - 1),
        fc.array(fc.tuple(fc.nat(), text), { maxLength: 5 }),
        async (index, picks) => {
          const row = rows[index];
          if (row === undefined || row.path.endsWith('/upload')) return;
          const names = Object.keys(row.params).filter((name) => !row.path.includes(`{${name}}`));
          const params: Record<string, string> = {};
          for (const [pick, value] of picks) {
            const name = names[pick % Math.max(1, names.length)];
            if (name !== undefined) params[indexed(name)] = value;
          }
          const response = await createHarness(version).call(
            row.method,
            fillPath(row.path),
            params,
          );
          expect([200, 400, 401, 403, 500, 501]).toContain(response.status);
          expect(isJson(response.body)).toBe(true);
        },
      ),
      { numRuns: 400, seed: 11 },
    );
  });
});
