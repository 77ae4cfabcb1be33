// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  createScriptedRegion,
  errorResponse,
  failConnection,
  okResponse,
} from './scripted-region.fixture.ts';

const VM = { vmId: 160, host: 'pve1' };
const AGENT = '/nodes/pve1/qemu/160/agent';

describe('guest agent', () => {
  it.each([
    'No QEMU guest agent configured',
    'VM 160 is not running',
    'QEMU guest agent is not running',
  ])('is down on the error: %s', async (text) => {
    const region = createScriptedRegion({
      [`POST ${AGENT}/ping`]: errorResponse(500, text),
      [`GET ${AGENT}/network-get-interfaces`]: errorResponse(500, text),
    });
    await expect(region.hypervisor.guestIsUp(VM)).resolves.toBe(false);
    await expect(region.hypervisor.guestInterfaces(VM)).rejects.toMatchObject({
      code: 'GUEST_AGENT_SILENT',
      class: 'Unreachable',
    });
  });

  it('is up when the ping succeeds; guestIsUp rejects when the host is unreachable', async () => {
    const up = createScriptedRegion({ [`POST ${AGENT}/ping`]: okResponse({ result: {} }) });
    await expect(up.hypervisor.guestIsUp(VM)).resolves.toBe(true);
    const down = createScriptedRegion({
      [`POST ${AGENT}/ping`]: { status: 595, reason: 'No route to host' },
    });
    await expect(down.hypervisor.guestIsUp(VM)).rejects.toMatchObject({
      code: 'PVE_HOST_UNREACHABLE',
    });
  });

  it('returns no loopback and link-local addresses', async () => {
    const region = createScriptedRegion({
      [`GET ${AGENT}/network-get-interfaces`]: okResponse({
        result: [
          { name: 'lo', 'ip-addresses': [{ 'ip-address': '127.0.0.1', prefix: 8 }] },
          {
            name: 'eth0',
            'hardware-address': 'bc:24:11:00:00:01',
            'ip-addresses': [
              { 'ip-address': '10.0.0.5', prefix: 24, 'ip-address-type': 'ipv4' },
              { 'ip-address': 'fe80::1', prefix: 64 },
              { 'ip-address': '169.254.3.4', prefix: 16 },
              { 'ip-address': 'fd00::5', prefix: 64 },
            ],
          },
          { name: 'eth1' },
        ],
      }),
    });
    await expect(region.hypervisor.guestInterfaces(VM)).resolves.toEqual([
      { name: 'eth0', mac: 'bc:24:11:00:00:01', addresses: ['10.0.0.5/24', 'fd00::5/64'] },
      { name: 'eth1', mac: undefined, addresses: [] },
    ]);
  });

  const EXEC = `POST ${AGENT}/exec`;
  const EXEC_STATUS = `GET ${AGENT}/exec-status`;
  const command = { command: ['/bin/sh', '-s'], input: 'echo hi', timeoutMs: 10_000 };

  it('runs a command to its end, also if the agent is silent in between', async () => {
    const responses = [
      okResponse({ exited: 0 }),
      errorResponse(500, 'QEMU guest agent is not running'),
      okResponse({ exited: 1, exitcode: 3, 'out-data': 'out', 'err-data': 'err' }),
    ];
    const region = createScriptedRegion({
      [EXEC]: okResponse({ pid: 77 }),
      [EXEC_STATUS]: () => responses.shift() ?? failConnection(true),
    });
    await expect(region.advanceUntil(region.hypervisor.guestExec(VM, command))).resolves.toEqual({
      exitCode: 3,
      output: 'out',
      errorOutput: 'err',
    });
    expect(region.transport.requests[0]?.text).toBe(
      'command=%2Fbin%2Fsh&command=-s&input-data=echo%20hi',
    );
    expect(region.lastRequest().url.search).toBe('?pid=77');
  });

  it('reports a lost result, because the agent returns a result once', async () => {
    let polls = 0;
    const region = createScriptedRegion({
      [EXEC]: okResponse({ pid: 77 }),
      [EXEC_STATUS]: () => {
        polls += 1;
        return polls === 1
          ? failConnection(true)
          : errorResponse(500, "Agent error: Invalid parameter 'pid'");
      },
    });
    await expect(
      region.advanceUntil(region.hypervisor.guestExec(VM, command)),
    ).rejects.toMatchObject({
      code: 'GUEST_AGENT_SILENT',
      message: expect.stringContaining('was lost'),
    });
  });

  it('times out while the status of the command is not answered', async () => {
    const region = createScriptedRegion({
      [EXEC]: okResponse({ pid: 77 }),
      [EXEC_STATUS]: () => new Promise(() => undefined),
    });
    await expect(
      region.advanceUntil(region.hypervisor.guestExec(VM, command)),
    ).rejects.toMatchObject({ class: 'TimedOut', facts: { pid: 77 } });
    expect(region.clock.monotonic()).toBeLessThanOrEqual(command.timeoutMs);
  });

  it('times out on a long command, and maps a signal to an exit code', async () => {
    const status: Record<string, number> = { exited: 0 };
    const region = createScriptedRegion({
      [EXEC]: okResponse({ pid: 77 }),
      [EXEC_STATUS]: () => okResponse(status),
    });
    await expect(
      region.advanceUntil(region.hypervisor.guestExec(VM, command)),
    ).rejects.toMatchObject({
      class: 'TimedOut',
      facts: { pid: 77 },
    });
    Object.assign(status, { exited: 1, signal: 9 });
    await expect(
      region.advanceUntil(region.hypervisor.guestExec(VM, command)),
    ).resolves.toMatchObject({
      exitCode: 137,
    });
  });

  it('encodes input and output as one character per byte', async () => {
    const status = { exited: 1, exitcode: 0, 'out-data': 'Ã¼', 'err-data': '☃' };
    const region = createScriptedRegion({
      [EXEC]: okResponse({ pid: 77 }),
      [EXEC_STATUS]: okResponse(status),
    });
    const umlaut = { ...command, input: 'ü' };
    await expect(
      region.advanceUntil(region.hypervisor.guestExec(VM, umlaut)),
    ).resolves.toMatchObject({
      output: 'ü',
      errorOutput: '☃',
    });
    expect(region.transport.requests[0]?.text).toContain('input-data=%C3%83%C2%BC');
    const nonAscii = { ...command, command: ['/bin/echo', 'ü'] };
    await expect(createScriptedRegion({}).hypervisor.guestExec(VM, nonAscii)).rejects.toMatchObject(
      {
        code: 'PARAMETER_REFUSED',
      },
    );
  });

  it('refuses more input than Proxmox accepts', async () => {
    const long = { ...command, input: 'x'.repeat(65_537) };
    await expect(createScriptedRegion({}).hypervisor.guestExec(VM, long)).rejects.toMatchObject({
      code: 'PARAMETER_REFUSED',
    });
  });
});
