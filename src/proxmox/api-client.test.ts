// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { PvescalerError, Unauthorized } from '../ports/errors.ts';
import { advanceUntilSettled } from '../ports/fakes/advance-until-settled.ts';
import { ScriptedTransport } from '../ports/fakes/scripted-transport.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { ApiClient, type ApiLimits } from './api-client.ts';
import {
  createScriptedRegion,
  errorResponse,
  failConnection,
  okResponse,
  SECRET,
  UPID,
} from './scripted-region.fixture.ts';

const VM = { vmId: 160, host: 'pve1' };
const START = 'POST /nodes/pve1/qemu/160/status/start';
const CONFIG = 'GET /nodes/pve1/qemu/160/config';

function failing(times: number, fail: () => never) {
  let left = times;
  return () => {
    if (left > 0) {
      left -= 1;
      fail();
    }
    return okResponse({ digest: 'd' });
  };
}

describe('API request', () => {
  it('sends the API token and no CSRF token', async () => {
    const region = createScriptedRegion({ [START]: okResponse(UPID) });
    await region.hypervisor.startVm(VM);
    expect(region.lastRequest().headers).toEqual({
      accept: 'application/json',
      authorization: `PVEAPIToken=scaler@pve!main=${SECRET}`,
    });
    expect(region.lastRequest().text).toBe('');
  });

  it('sends form parameters in the body, and those of DELETE in the query', async () => {
    const region = createScriptedRegion({
      'POST /nodes/pve1/qemu/160/status/shutdown': okResponse(UPID),
      'DELETE /nodes/pve1/qemu/160': okResponse(UPID),
    });
    await region.hypervisor.shutdownVm(VM, 61_500);
    expect(region.lastRequest().headers['content-type']).toBe('application/x-www-form-urlencoded');
    expect(region.lastForm()).toEqual({ timeout: '62', forceStop: '1' });
    await region.hypervisor.destroyVm(VM);
    expect(region.lastRequest().url.search).toBe('?purge=1');
    expect(region.lastRequest().text).toBe('');
    expect(region.lastRequest().headers).not.toHaveProperty('content-type');
  });

  it('uses the new secret after a rotation', async () => {
    let secret = 'first-secret';
    const credentials = { kind: 'token', id: 'a@pve!b', secret: () => secret } as const;
    const region = createScriptedRegion({ [START]: okResponse(UPID) }, { credentials });
    await region.hypervisor.startVm(VM);
    secret = 'second-secret';
    await region.hypervisor.startVm(VM);
    expect(region.lastRequest().headers['authorization']).toBe('PVEAPIToken=a@pve!b=second-secret');
  });

  it('fails with UNEXPECTED_ANSWER when the response is not from the Proxmox API', async () => {
    const region = createScriptedRegion({ [CONFIG]: { status: 200, body: '<html>login</html>' } });
    await expect(region.hypervisor.vmConfig(VM)).rejects.toMatchObject({
      code: 'UNEXPECTED_ANSWER',
    });
    const noTask = createScriptedRegion({ [START]: okResponse(null) });
    await expect(noTask.hypervisor.startVm(VM)).rejects.toMatchObject({
      code: 'UNEXPECTED_ANSWER',
    });
  });

  it('contains no secret in its error', async () => {
    const region = createScriptedRegion({
      'POST /nodes/pve1/qemu/160/agent/exec': errorResponse(
        500,
        `bad: ${SECRET} and join-token-abc`,
      ),
    });
    const command = { command: ['/bin/sh'], input: 'join-token-abc\nmore', timeoutMs: 1_000 };
    const error: unknown = await region.hypervisor
      .guestExec(VM, command)
      .catch((reason: unknown) => reason);
    if (!(error instanceof PvescalerError)) throw new Error('not a PvescalerError');
    const printed = JSON.stringify([error, error.message, error.stack, error.facts, error.cause]);
    expect(printed).not.toContain(SECRET);
    expect(printed).not.toContain('join-token-abc');
    expect(error.message).toContain('*** and ***');
  });

  it('fails with CANCELLED after an abort and after close', async () => {
    const region = createScriptedRegion({ [CONFIG]: () => new Promise(() => undefined) });
    const abort = new AbortController();
    const pending = region.hypervisor.vmConfig(VM, { signal: abort.signal });
    await region.clock.advance(1);
    abort.abort();
    await expect(pending).rejects.toMatchObject({ code: 'CANCELLED' });
    const other = region.hypervisor.vmConfig(VM);
    await region.clock.advance(1);
    await region.hypervisor.close();
    await expect(other).rejects.toMatchObject({ code: 'CANCELLED' });
    await expect(region.hypervisor.vmConfig(VM)).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(region.transport.closed).toBe(true);
    expect(region.clock.sleeping).toBe(0);
  });

  it('respects the limit of concurrent requests per endpoint', async () => {
    let active = 0;
    let maxActive = 0;
    const region = createScriptedRegion(
      {
        [CONFIG]: async () => {
          active += 1;
          maxActive = Math.max(maxActive, active);
          await region.clock.sleep(100);
          active -= 1;
          return okResponse({ digest: 'd' });
        },
      },
      { limits: { maxConcurrentRequests: 3 } },
    );
    const all = Array.from({ length: 10 }, () => region.hypervisor.vmConfig(VM));
    await region.advanceUntil(Promise.all(all));
    expect(maxActive).toBe(3);
  });
});

describe('retries', () => {
  it('repeat a read with growing backoff after a lost response', async () => {
    const region = createScriptedRegion({ [CONFIG]: failing(3, () => failConnection(true)) });
    await region.advanceUntil(region.hypervisor.vmConfig(VM));
    expect(region.transport.requests).toHaveLength(4);
    expect(region.clock.monotonic()).toBeGreaterThan(200 + 400 + 800 - 1);
    expect(region.clock.monotonic()).toBeLessThan(2_800 + 1);
  });

  it('end after the maximum number of attempts', async () => {
    const region = createScriptedRegion({ [CONFIG]: failing(99, () => failConnection(false)) });
    await expect(region.advanceUntil(region.hypervisor.vmConfig(VM))).rejects.toMatchObject({
      code: 'PVE_UNREACHABLE',
    });
    expect(region.transport.requests).toHaveLength(4);
  });

  it('never repeat a request that starts a task and may have been received', async () => {
    const region = createScriptedRegion(
      { [START]: () => failConnection(true) },
      { endpoints: ['https://pve1:8006', 'https://pve2:8006'] },
    );
    await expect(region.advanceUntil(region.hypervisor.startVm(VM))).rejects.toMatchObject({
      code: 'PVE_UNREACHABLE',
      facts: { requestSent: true },
    });
    expect(region.requestLines()).toEqual([START]);
  });

  it('do not happen on 595, which is reported as not sent', async () => {
    const region = createScriptedRegion({ [CONFIG]: { status: 595, reason: 'No route to host' } });
    await expect(region.hypervisor.vmConfig(VM)).rejects.toMatchObject({
      code: 'PVE_HOST_UNREACHABLE',
      facts: { requestSent: false, host: 'pve1', vmId: 160 },
    });
    expect(region.requestLines()).toHaveLength(1);
  });

  it('happen on a lock timeout only for a repeatable change', async () => {
    let left = 2;
    const answer = () => {
      left -= 1;
      return left >= 0 ? errorResponse(500, "can't lock file 'x' - got timeout") : okResponse(null);
    };
    const region = createScriptedRegion({
      'DELETE /nodes/pve1/storage/local/content/local:iso/a.iso': answer,
      'PUT /nodes/pve1/qemu/160/config': answer,
    });
    await region.advanceUntil(region.hypervisor.deleteVolume('pve1', 'local:iso/a.iso'));
    expect(region.requestLines()).toHaveLength(3);
    left = 1;
    const change = region.hypervisor.setDescription(VM, 'text', { digest: 'abc' });
    await expect(change).rejects.toMatchObject({
      code: 'LOCK_TIMED_OUT',
    });
  });

  it('happen on 596 for a read', async () => {
    let requests = 0;
    const region = createScriptedRegion({
      [CONFIG]: () => {
        requests += 1;
        return requests === 1
          ? { status: 596, reason: 'Connection timed out' }
          : okResponse({ digest: 'd' });
      },
    });
    await region.advanceUntil(region.hypervisor.vmConfig(VM));
    expect(requests).toBe(2);
  });
});

describe('several endpoints', () => {
  const endpoints = ['https://pve1:8006', 'https://pve2:8006'];
  const ON_PVE9 = { vmId: 160, host: 'pve9' };
  const AT_PVE9 = 'POST /nodes/pve9/qemu/160/status/start';

  it('uses the next endpoint when nothing was sent, also for a request that starts a task', async () => {
    const region = createScriptedRegion(
      {
        [AT_PVE9]: ({ url }) =>
          url.hostname === 'pve1' ? failConnection(false) : okResponse(UPID),
      },
      { endpoints },
    );
    await region.hypervisor.startVm(ON_PVE9);
    await region.hypervisor.startVm(ON_PVE9);
    // pve1 is tried once, then it is in its cooldown.
    expect(region.transport.requests.map((request) => request.url.hostname)).toEqual([
      'pve1',
      'pve2',
      'pve2',
    ]);
    await region.clock.advance(30_000);
    await region.hypervisor.startVm(ON_PVE9);
    expect(region.transport.requests.at(-2)?.url.hostname).toBe('pve1');
  });

  it('uses the next endpoint when a certificate is not trusted, and fails when none is', async () => {
    const distrust = () => {
      throw new Unauthorized('TLS_NOT_TRUSTED', 'no', { facts: { requestSent: false } });
    };
    const one = createScriptedRegion(
      { [AT_PVE9]: ({ url }) => (url.hostname === 'pve1' ? distrust() : okResponse(UPID)) },
      { endpoints },
    );
    await one.hypervisor.startVm(ON_PVE9);
    const none = createScriptedRegion({ [AT_PVE9]: distrust }, { endpoints });
    await expect(none.hypervisor.startVm(ON_PVE9)).rejects.toMatchObject({
      code: 'TLS_NOT_TRUSTED',
    });
  });

  it('moves queued requests away from an endpoint that hangs', async () => {
    const region = createScriptedRegion(
      {
        [AT_PVE9]: ({ url }) =>
          url.hostname === 'pve1' ? new Promise(() => undefined) : okResponse(UPID),
      },
      { endpoints, limits: { maxConcurrentRequests: 2, requestTimeoutMs: 10_000 } },
    );
    const ends = Array.from({ length: 8 }, () =>
      region.hypervisor.startVm(ON_PVE9).then(
        () => 'started',
        (error: unknown) => (error instanceof PvescalerError ? error.code : 'not ours'),
      ),
    );
    const all = await region.advanceUntil(Promise.all(ends));
    // Two requests may have been received and are not repeated; the queued ones use pve2.
    expect(all.toSorted()).toEqual([
      ...Array.from({ length: 2 }, () => 'REQUEST_TIMED_OUT'),
      ...Array.from({ length: 6 }, () => 'started'),
    ]);
    expect(region.clock.monotonic()).toBeLessThan(10_100);
  });

  it.each([
    ['has no quorum', 500, 'cluster not ready - no quorum?'],
    ['has no cluster file system', 500, 'Unable to load access control list: x'],
    ['refuses the credentials', 401, 'Authentication failed!'],
  ])('uses another endpoint for later requests when one %s', async (_name, status, text) => {
    const routes = { [START]: errorResponse(status, text), [CONFIG]: okResponse({ digest: 'd' }) };
    const region = createScriptedRegion(routes, { endpoints });
    await expect(region.hypervisor.startVm(VM)).rejects.toBeInstanceOf(PvescalerError);
    await region.hypervisor.vmConfig(VM);
    const hosts = region.transport.requests.map(({ url }) => url.hostname);
    expect(hosts).toEqual(['pve1', 'pve2']);
  });

  it('sends the request directly to the host if it is an endpoint', async () => {
    const at = 'POST /nodes/pve2/qemu/160/status/start';
    const region = createScriptedRegion({ [at]: okResponse(UPID) }, { endpoints });
    await region.hypervisor.startVm({ vmId: 160, host: 'pve2' });
    expect(region.lastRequest().url.hostname).toBe('pve2');
  });
});

describe('the limit of a call', () => {
  const hanging = () => new ScriptedTransport(() => new Promise(() => undefined), { clock });
  const clock = new VirtualClock();
  const open = (transport: ScriptedTransport, limits: Partial<ApiLimits> = {}) =>
    new ApiClient({
      endpoints: ['https://pve1:8006', 'https://pve2:8006'],
      credentials: { kind: 'token', id: 'scaler@pve!main', secret: () => SECRET },
      transport,
      clock,
      random: new SeededRandom(1),
      limits,
    });
  const read = { method: 'GET', path: '/x', operation: 'read x' } as const;

  it('includes all attempts on all endpoints', async () => {
    const transport = hanging();
    const startedAt = clock.monotonic();
    const call = open(transport, { requestTimeoutMs: 10_000 }).request({
      ...read,
      timeoutMs: 25_000,
    });
    await expect(advanceUntilSettled(clock, call)).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      message: expect.stringContaining('no answer to GET /api2/json/x'),
    });
    expect(clock.monotonic() - startedAt).toBe(25_000);
    expect(transport.requests.map(({ url }) => url.hostname)).toEqual(['pve1', 'pve2', 'pve1']);
  });

  it('includes the wait in the queue, and nothing was sent then', async () => {
    const api = open(hanging(), { maxConcurrentRequests: 1 });
    const blocking = api.request(read).catch(() => undefined);
    await clock.advance(0);
    const startedAt = clock.monotonic();
    const queued = api.request({ ...read, timeoutMs: 1_000 });
    await expect(advanceUntilSettled(clock, queued)).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      message: 'read x: not done within 1 s, retries included',
      facts: { requestSent: false },
    });
    expect(clock.monotonic() - startedAt).toBe(1_000);
    await api.close();
    await blocking;
  });

  it('includes the pause before the next attempt', async () => {
    const refusing = new ScriptedTransport(() => failConnection(false), { clock });
    const startedAt = clock.monotonic();
    const call = open(refusing).request({ ...read, timeoutMs: 50 });
    await expect(advanceUntilSettled(clock, call)).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
    });
    expect(clock.monotonic() - startedAt).toBe(50);
  });

  it('is not reported when the caller aborts first', async () => {
    const abort = new AbortController();
    const call = open(hanging()).request({ ...read, timeoutMs: 1_000, signal: abort.signal });
    const rejection = expect(call).rejects.toMatchObject({ code: 'CANCELLED' });
    await clock.advance(10);
    abort.abort();
    await rejection;
    expect(clock.sleeping).toBe(0);
  });
});

describe('password login', () => {
  let logins: Record<string, string>[] = [];
  let valid = '';
  let delay: Promise<void> | undefined;
  let reason: string | undefined;
  let loginFailure: (() => never) | undefined;

  function withPassword(extra: { refuse?: boolean; secondFactor?: boolean } = {}) {
    logins = [];
    delay = undefined;
    reason = undefined;
    loginFailure = undefined;
    return createScriptedRegion(
      {
        'POST /access/ticket': ({ text }) => {
          const form = Object.fromEntries(new URLSearchParams(text));
          logins.push(form);
          loginFailure?.();
          const isGood = form['password'] === 'pa&ss=word' || form['password'] === valid;
          if (extra.refuse === true || !isGood) return errorResponse(401, 'authentication failure');
          if (extra.secondFactor === true) return okResponse({ NeedTFA: 1, ticket: 'PVE:!tfa!' });
          valid = `PVE:me@pam:${logins.length}::abc+/=`;
          return okResponse({
            ticket: valid,
            CSRFPreventionToken: `csrf-${logins.length}`,
            username: 'me',
          });
        },
        [CONFIG]: okResponse({ digest: 'd' }),
        [START]: async ({ headers }) => {
          await delay;
          if (reason !== undefined) return errorResponse(500, reason);
          return headers['cookie'] === `PVEAuthCookie=${encodeURIComponent(valid)}`
            ? okResponse(UPID)
            : { status: 401, reason: 'Authentication failed!' };
        },
      },
      { credentials: { kind: 'password', user: 'me@pam', password: () => 'pa&ss=word' } },
    );
  }

  it('logs in once for concurrent requests, and sends ticket and CSRF token', async () => {
    const region = withPassword();
    const { hypervisor } = region;
    await Promise.all([hypervisor.startVm(VM), hypervisor.startVm(VM), hypervisor.startVm(VM)]);
    expect(logins).toEqual([{ username: 'me@pam', password: 'pa&ss=word' }]);
    expect(region.lastRequest().headers['csrfpreventiontoken']).toBe('csrf-1');
    expect(region.lastRequest().headers).not.toHaveProperty('authorization');
  });

  it('sends the CSRF token only with changes', async () => {
    const region = withPassword();
    await region.hypervisor.startVm(VM);
    await region.hypervisor.vmConfig(VM);
    expect(region.lastRequest().method).toBe('GET');
    expect(region.lastRequest().headers).toHaveProperty('cookie');
    expect(region.lastRequest().headers).not.toHaveProperty('csrfpreventiontoken');
  });

  it('keeps the ticket that another request has renewed', async () => {
    const region = withPassword();
    await region.hypervisor.startVm(VM);
    valid = 'another cluster key';
    const late = Promise.withResolvers<void>();
    delay = late.promise;
    const slow = region.hypervisor.startVm(VM);
    await region.clock.advance(0);
    delay = undefined;
    await region.hypervisor.startVm(VM);
    expect(logins).toHaveLength(2);
    late.resolve();
    await slow;
    expect(logins).toHaveLength(2);
  });

  it('reveals neither password nor ticket nor CSRF token in an error', async () => {
    const region = withPassword();
    await region.hypervisor.startVm(VM);
    const { cookie = '', csrfpreventiontoken = '' } = region.lastRequest().headers;
    const ticket = decodeURIComponent(cookie.replace('PVEAuthCookie=', ''));
    const secrets = ['pa&ss=word', ticket, csrfpreventiontoken];
    reason = `refused ${secrets.join(' ')}`;
    const error = await region.hypervisor.startVm(VM).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PvescalerError);
    for (const secret of secrets) expect(String(error)).not.toContain(secret);
  });

  it('renews the ticket with the old ticket before it expires', async () => {
    const region = withPassword();
    await region.clock.advance(1_000);
    await region.hypervisor.startVm(VM);
    const first = valid;
    await region.clock.advance(60 * 60 * 1_000 - 1);
    await region.hypervisor.startVm(VM);
    expect(logins).toHaveLength(1);
    await region.clock.advance(1);
    await region.hypervisor.startVm(VM);
    expect(logins.map((login) => login['password'])).toEqual(['pa&ss=word', first]);
  });

  it('does not send the password when the renewal fails for another reason', async () => {
    const region = withPassword();
    await region.hypervisor.startVm(VM);
    await region.clock.advance(61 * 60 * 1_000);
    loginFailure = () => failConnection(true);
    await expect(region.hypervisor.startVm(VM)).rejects.toMatchObject({ code: 'PVE_UNREACHABLE' });
    expect(logins).toHaveLength(2);
    expect(logins[1]?.['password']).not.toBe('pa&ss=word');
  });

  it('logs in again once when the ticket is refused, also for a request that starts a task', async () => {
    const region = withPassword();
    await region.hypervisor.startVm(VM);
    valid = 'another cluster key';
    await region.hypervisor.startVm(VM);
    expect(logins).toHaveLength(2);
    valid = 'yet another';
    await region.clock.advance(61 * 60 * 1_000);
    await region.hypervisor.startVm(VM);
    expect(logins.at(-1)?.['password']).toBe('pa&ss=word');
  });

  it('fails with CREDENTIALS_REFUSED for a wrong password and for a required second factor', async () => {
    const wrong = withPassword({ refuse: true });
    await expect(wrong.hypervisor.startVm(VM)).rejects.toMatchObject({
      code: 'CREDENTIALS_REFUSED',
    });
    expect(wrong.requestLines()).toEqual(['POST /access/ticket']);
    await expect(withPassword({ secondFactor: true }).hypervisor.startVm(VM)).rejects.toMatchObject(
      {
        code: 'CREDENTIALS_REFUSED',
        message: 'log in as me@pam: Proxmox requires a second factor',
        hint: 'Use an API token: tokens need no second factor.',
      },
    );
  });

  it('does not retry a refused token', async () => {
    const region = createScriptedRegion({
      [START]: { status: 401, reason: 'invalid token value!' },
    });
    await expect(region.hypervisor.startVm(VM)).rejects.toMatchObject({
      code: 'CREDENTIALS_REFUSED',
    });
    expect(region.requestLines()).toHaveLength(1);
  });
});
