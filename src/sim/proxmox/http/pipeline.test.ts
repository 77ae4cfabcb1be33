// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness, TOKEN } from '../testing/sim-harness.ts';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const JSON_TYPE = { 'content-type': 'application/json' };

describe('request parsing', () => {
  it.each([
    ['HEAD', '/api2/json/version', {}, undefined, 501, "method 'HEAD' not available"],
    ['PATCH', '/api2/json/version', {}, undefined, 501, "method 'PATCH' not available"],
    [
      'POST',
      '/api2/json/pools',
      { 'transfer-encoding': 'chunked' },
      undefined,
      501,
      'chunked transfer encoding not supported',
    ],
    ['GET', '/api2/json/version', {}, 'a=b', 501, "Unexpected content for method 'GET'"],
    [
      'DELETE',
      '/api2/json/nodes/pve1/qemu/100',
      FORM,
      'purge=1',
      501,
      "Unexpected content for method 'DELETE'",
    ],
    ['POST', '/api2/json/pools', FORM, 'a='.padEnd(600_000, 'x'), 501, 'for data too large'],
    ['GET', '/api2/xml/version', {}, undefined, 501, 'no such uri'],
    ['GET', '/favicon.ico', {}, undefined, 501, "no such file '/favicon.ico'"],
    [
      'POST',
      '/api2/json/pools',
      { 'content-type': 'text/xml' },
      '<a/>',
      506,
      "upload 'Content-Type 'text/xml' not implemented",
    ],
  ])('%s %s is refused without a response body', async (...row) => {
    const [method, target, headers, body, status, reason] = row;
    const response = await new SimHarness().send({ method, target, headers, body });
    expect([response.status, response.reason, response.body]).toEqual([status, reason, '']);
  });

  it('responds to an unknown path or method with a JSON error', async () => {
    const harness = new SimHarness();
    const response = await harness.call('GET', '/x');
    expect([response.status, response.reason]).toEqual([501, "Method 'GET /x' not implemented"]);
    expect(JSON.parse(response.body)).toEqual({
      data: null,
      message: "Method 'GET /x' not implemented",
    });
    expect((await harness.call('PUT', '/version')).reason).toBe(
      "Method 'PUT /version' not implemented",
    );
  });

  it('accepts doubled and trailing slashes, the _dc parameter and JSON bodies', async () => {
    const harness = new SimHarness();
    expect(
      (await harness.send({ method: 'GET', target: '/api2/json//version/?_dc=123' })).status,
    ).toBe(200);
    const body = JSON.stringify({ poolid: 'k8s', comment: null });
    const response = await harness.send({
      method: 'POST',
      target: '/api2/json/pools',
      headers: JSON_TYPE,
      body,
    });
    expect([response.status, response.body]).toEqual([200, '{"data":null}']);
  });

  it.each([
    [
      '',
      'malformed JSON string, neither tag, array, object, number, string or atom, at character offset 0 (before "(end of string)")\n',
    ],
    [
      'bad',
      'malformed JSON string, neither tag, array, object, number, string or atom, at character offset 0 (before "bad")\n',
    ],
    ['{bad', `'"' expected, at character offset 1 (before "bad")\n`],
    ['{"a":1,}', `'"' expected, at character offset 7 (before "}")\n`],
    ['[1]', 'Not a HASH reference\n'],
  ])('responds to invalid JSON %j in plain text', async (body, text) => {
    const response = await new SimHarness().send({
      method: 'POST',
      target: '/api2/json/pools',
      headers: JSON_TYPE,
      body,
    });
    expect(response.status).toBe(500);
    expect(response.body).toBe(text);
  });

  it('splits forms at semicolons and truncates values at a second equals sign', async () => {
    const harness = new SimHarness();
    await harness.createVm(100);
    const put = (body: string) =>
      harness.send({
        method: 'PUT',
        target: '/api2/json/nodes/pve1/qemu/100/config',
        headers: FORM,
        body,
      });
    expect((await put('tags=a;b')).errors).toEqual({
      b: 'property is not defined in schema and the schema does not allow additional properties',
    });
    expect((await put('net0=virtio,bridge=vmbr0')).errors?.['net0']).toBe(
      'invalid format - duplicate key in comma-separated list property: model\n',
    );
    expect((await put('net0=virtio%2Cbridge%3Dvmbr0')).status).toBe(200);
    expect((await put('name=a+b')).errors?.['name']).toBe(
      'invalid format - value does not look like a valid DNS name\n',
    );
  });

  it('prefers the query over the body and refuses a body that contradicts the path', async () => {
    const harness = new SimHarness();
    await harness.createVm(100);
    const target = '/api2/json/nodes/pve1/qemu/100/config?name=from-query';
    await harness.send({ method: 'PUT', target, headers: FORM, body: 'name=from-body' });
    const { data } = await harness.call('GET', '/nodes/pve1/qemu/100/config');
    expect(data.name).toBe('from-query');
    const response = await harness.call('PUT', '/nodes/pve1/qemu/100/config', {
      vmid: 101,
      name: 'x',
    });
    expect(response.errors).toEqual({
      vmid: 'duplicate parameter (already defined in URI) with conflicting values!',
    });
  });

  it('always responds with 200 in the extjs format', async () => {
    const harness = new SimHarness();
    const good = await harness.send({ method: 'GET', target: '/api2/extjs/version' });
    expect(JSON.parse(good.body)).toMatchObject({ success: 1 });
    const bad = await harness.send({
      method: 'GET',
      target: '/api2/extjs/nodes/pve1/qemu/999/config',
    });
    expect([bad.status, JSON.parse(bad.body)]).toEqual([
      200,
      {
        data: null,
        success: 0,
        status: 500,
        message: "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist\n",
      },
    ]);
  });

  it('accepts known host names and reports a failed lookup for unknown ones', async () => {
    const harness = new SimHarness();
    expect((await harness.call('GET', '/nodes/localhost/version')).status).toBe(200);
    expect((await harness.call('GET', '/nodes/nosuch/version')).reason).toMatch(
      /^hostname lookup 'nosuch' failed - failed to get address info for: nosuch/,
    );
  });
});

describe('authentication', () => {
  const refused = async (authorization: string | undefined, version: '8.4' | '9.2') => {
    const harness = new SimHarness({ version });
    const before = harness.clock.now();
    const headers = authorization === undefined ? {} : { authorization };
    const response = await harness.runUntilSettled(
      harness.sim.handle({ method: 'GET', target: '/api2/json/version', headers }),
    );
    expect([response.status, response.body, harness.clock.now() - before]).toEqual([401, '', 3000]);
    return response.reason;
  };

  it.each([
    [undefined, 'No ticket', 'No ticket'],
    [`${TOKEN}x`, 'Authentication failed!', 'invalid token value!'],
    [
      'PVEAPIToken=scaler@pve!none=x',
      'Authentication failed!',
      "no such token 'none' for user 'scaler@pve'",
    ],
    ['PVEAPIToken=who@pve!none=x', 'Authentication failed!', "no such user ('who@pve')"],
    [
      'PVEAPIToken=weak@pve!old=22222222-2222-4222-8222-222222222222',
      'Authentication failed!',
      "token 'old' access expired",
    ],
    [
      'PVEAuthCookie=PVE:x@pve:00000000::abc',
      'Authentication failed!',
      'permission denied - invalid PVE ticket',
    ],
  ])('refuses %s after 3 s without a body', async (authorization, in9, in8) => {
    expect(await refused(authorization, '9.2')).toBe(in9);
    expect(await refused(authorization, '8.4')).toBe(in8);
  });

  it('accepts an API token after a space instead of an equals sign', async () => {
    const harness = new SimHarness();
    harness.authorization = TOKEN.replace('=', ' ');
    expect((await harness.call('GET', '/version')).status).toBe(200);
  });

  it('issues tickets for passwords and tickets, and requires CSRF tokens for writes', async () => {
    const harness = new SimHarness();
    const login = (password: string) =>
      harness.call('POST', '/access/ticket', { username: 'scaler@pve', password });
    expect((await login('simulated')).reason).toBe(
      "Permission check failed (URI '/access/ticket' not available with API token, need proper ticket.",
    );
    harness.authorization = '';
    const { data } = await login('simulated');
    expect(data).toMatchObject({ username: 'scaler@pve', cap: { vms: { 'VM.Allocate': 1 } } });
    expect((await login(data.ticket)).status).toBe(200);
    const wrong = await login('guess');
    expect([wrong.status, wrong.reason, wrong.message]).toEqual([
      401,
      'authentication failure',
      'authentication failure\n',
    ]);
    harness.authorization = '';
    const cookie = `PVEAuthCookie=${encodeURIComponent(data.ticket)}`;
    const change = (headers: Record<string, string>) =>
      harness.send({
        method: 'POST',
        target: '/api2/json/pools?poolid=x',
        headers: { cookie, ...headers },
      });
    expect((await change({})).reason).toBe('Permission denied - invalid csrf token');
    expect((await change({ csrfpreventiontoken: data.CSRFPreventionToken })).status).toBe(200);
    await harness.clock.advance(2 * 3600_000);
    expect((await change({ csrfpreventiontoken: data.CSRFPreventionToken })).reason).toBe(
      'Authentication failed!',
    );
  });

  it('refuses API tokens where a ticket is required', async () => {
    const harness = new SimHarness();
    const response = await harness.call('PUT', '/access/users/x@pve/token/y');
    expect(response.status).toBe(403);
  });
});
