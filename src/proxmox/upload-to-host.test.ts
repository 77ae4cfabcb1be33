// SPDX-License-Identifier: Apache-2.0
// An upload for a host without a configured endpoint goes to the address that the cluster reports.
import { describe, expect, it } from 'vitest';
import { Unauthorized } from '../ports/errors.ts';
import type { RecordedRequest } from '../ports/fakes/scripted-transport.ts';
import {
  createScriptedRegion,
  errorResponse,
  failConnection,
  okResponse,
  type Route,
  UPID,
} from './scripted-region.fixture.ts';

const STATUS = [
  { type: 'cluster', name: 'lab', quorate: 1 },
  { type: 'node', name: 'pve1', ip: '10.0.0.1', local: 1, online: 1 },
  { type: 'node', name: 'pve2', ip: '10.0.0.2', local: 0, online: 1 },
  { type: 'node', name: 'pve3', ip: 'fd00::3', local: 0, online: 1 },
];
const SSH_FAILED =
  "can't activate storage 'local' on node 'pve2': command '/usr/bin/ssh -o x' failed";
const file = (host: string) => ({
  host,
  storage: 'local',
  name: 's.iso',
  bytes: new Uint8Array(4),
});

function aRegion(options: {
  readonly endpoints?: readonly string[];
  readonly status?: Route;
  readonly upload?: (request: RecordedRequest) => ReturnType<Route>;
}) {
  const { endpoints = ['https://10.0.0.1:8006'], upload = () => okResponse(UPID) } = options;
  const route = (host: string) => `POST /nodes/${host}/storage/local/upload`;
  return createScriptedRegion(
    {
      'GET /cluster/status': options.status ?? okResponse(STATUS),
      [route('pve1')]: upload,
      [route('pve2')]: upload,
      [route('pve3')]: upload,
    },
    { endpoints },
  );
}

function origins(region: ReturnType<typeof aRegion>, method = 'POST'): readonly string[] {
  return region.transport.requests
    .filter((request) => request.method === method && !request.url.pathname.endsWith('/version'))
    .map(({ url }) => url.origin);
}

describe('uploadIso to another host than that of the endpoint', () => {
  it('is sent to the address of the host, which is read once in five minutes', async () => {
    const region = aRegion({});
    for (const host of ['pve2', 'pve3', 'pve1', 'pve2'])
      await region.hypervisor.uploadIso(file(host));
    expect(origins(region)).toEqual([
      'https://10.0.0.2:8006',
      'https://[fd00::3]:8006',
      'https://10.0.0.1:8006',
      'https://10.0.0.2:8006',
    ]);
    expect(origins(region, 'GET')).toHaveLength(1);
    await region.clock.advance(5 * 60_000);
    await region.hypervisor.uploadIso(file('pve2'));
    expect(origins(region, 'GET')).toHaveLength(2);
  });

  it('uses a configured endpoint on that host, by name or by address', async () => {
    const byName = aRegion({ endpoints: ['https://pve1:8006', 'https://pve2.lab:8006'] });
    await byName.hypervisor.uploadIso(file('pve2'));
    expect(origins(byName)).toEqual(['https://pve2.lab:8006']);
    expect(origins(byName, 'GET')).toEqual([]);
    const byAddress = aRegion({ endpoints: ['https://10.0.0.1:8006', 'https://10.0.0.2:8006'] });
    await byAddress.hypervisor.uploadIso(file('pve2'));
    expect(origins(byAddress)).toEqual(['https://10.0.0.2:8006']);
  });

  it('reads no addresses behind a reverse proxy or forwarded port', async () => {
    const region = aRegion({ endpoints: ['https://pve.example:443'] });
    await region.hypervisor.uploadIso(file('pve2'));
    expect(origins(region)).toEqual(['https://pve.example']);
    expect(origins(region, 'GET')).toEqual([]);
  });

  it('ignores an address that is not an IP address', async () => {
    const status = okResponse([{ type: 'node', name: 'pve2', ip: 'evil.example', local: 0 }]);
    const region = aRegion({ status: () => status });
    await region.hypervisor.uploadIso(file('pve2'));
    expect(origins(region)).toEqual(['https://10.0.0.1:8006']);
  });

  it.each([
    ['cannot be reached', () => failConnection(false), 'connection failed'],
    [
      'has a certificate that is not trusted',
      () => {
        const facts = { requestSent: false };
        throw new Unauthorized('TLS_NOT_TRUSTED', '10.0.0.2 presents the certificate AA', {
          facts,
        });
      },
      '10.0.0.2 presents the certificate AA',
    ],
  ])(
    'goes through the endpoint if the address %s, and an error says so',
    async (_, fail, reason) => {
      let isSshWorking = true;
      const region = aRegion({
        upload: ({ url }) => {
          if (url.hostname === '10.0.0.2') return fail();
          return isSshWorking ? okResponse(UPID) : errorResponse(500, SSH_FAILED);
        },
      });
      await region.hypervisor.uploadIso(file('pve2'));
      expect(origins(region)).toEqual(['https://10.0.0.2:8006', 'https://10.0.0.1:8006']);
      await region.hypervisor.uploadIso(file('pve2'));
      expect(origins(region).slice(2)).toEqual(['https://10.0.0.1:8006']);
      isSshWorking = false;
      await expect(region.hypervisor.uploadIso(file('pve2'))).rejects.toMatchObject({
        code: 'PVE_HOST_UNREACHABLE',
        hint: expect.stringContaining(`(https://10.0.0.2:8006: ${reason})`),
      });
    },
  );

  it('is not sent a second time if the host may have received it', async () => {
    const region = aRegion({ upload: () => failConnection(true) });
    await expect(region.hypervisor.uploadIso(file('pve2'))).rejects.toMatchObject({
      code: 'PVE_UNREACHABLE',
    });
    expect(origins(region)).toEqual(['https://10.0.0.2:8006']);
  });

  it('goes through the endpoint if the addresses cannot be read, and an error says why', async () => {
    const region = aRegion({
      status: () => errorResponse(403, 'Permission check failed (/, Sys.Audit)'),
      upload: () => errorResponse(500, SSH_FAILED),
    });
    await expect(region.hypervisor.uploadIso(file('pve2'))).rejects.toMatchObject({
      code: 'PVE_HOST_UNREACHABLE',
      hint: expect.stringContaining('Permission check failed (/, Sys.Audit)'),
    });
  });
});
