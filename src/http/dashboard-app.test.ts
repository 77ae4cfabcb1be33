// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, vi } from 'vitest';
import { NoCapacity, NotFound } from '../ports/errors.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { createDashboardApp, type DashboardSources } from './dashboard-app.ts';
import { type DashboardState, dashboardState } from './dashboard-contract.ts';
import { findChange, LiveState } from './live-state.ts';

const STATE: DashboardState = {
  at: 1_000,
  version: '1.0.0',
  mode: 'standalone',
  isDriver: true,
  problems: [],
  hasActions: true,
  hosts: [],
  pools: [],
  machines: [],
  pending: [],
  plans: [],
  journal: [],
  samples: [],
  timesToReady: [],
};

function aMachine(id: string, phase: string): DashboardState['machines'][number] {
  return { id, pool: 'workers', phase, phases: [], addresses: [], cpu: 2, memoryBytes: 1 };
}

function anApp(changes: Partial<DashboardSources> = {}) {
  const requested: string[] = [];
  const record = (text: string) => {
    requested.push(text);
    return Promise.resolve(text);
  };
  const app = createDashboardApp({
    readState: () => Promise.resolve(STATE),
    actions: {
      scalePool: (pool, to) => record(`scale ${pool} ${to}`),
      pausePool: (pool, minutes) => record(`pause ${pool} ${minutes}`),
      resumePool: (pool) => record(`resume ${pool}`),
      drainMachine: (machine) => record(`drain ${machine}`),
      deleteMachine: (machine) => record(`delete ${machine}`),
    },
    readToken: () => Promise.resolve('correct'),
    readFile: (name) => Promise.resolve(`file ${name}`),
    hostNames: ['scaler.example'],
    clock: new VirtualClock(),
    ...changes,
  });
  const request = (
    path: string,
    init: Omit<RequestInit, 'headers'> & { readonly headers?: Record<string, string> } = {},
  ) => app.request(path, { ...init, headers: { host: '127.0.0.1:8081', ...init.headers } });
  const post = (path: string, token: string | undefined, body?: unknown) =>
    request(path, {
      method: 'POST',
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  return { app, request, post, requested };
}

describe('the dashboard', () => {
  it('serves its page with a strict policy, and no other file', async () => {
    const { request } = anApp();
    const page = await request('/index.html');
    expect(await page.text()).toBe('file index.html');
    const policy = page.headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe');
    expect((await request('/../package.json')).status).toBe(404);
    expect((await request('/config.yaml')).status).toBe(404);
  });

  it('serves a state that its description allows', async () => {
    const state: unknown = await (await anApp().request('/api/v1/state')).json();
    expect(dashboardState.parse(state)).toEqual(STATE);
  });

  it.each([
    ['127.0.0.1:8081', 200],
    ['localhost:8081', 200],
    ['[::1]:8081', 200],
    ['scaler.example', 200],
    ['attacker.example', 403],
    ['', 403],
  ])('answers requests for the host "%s" with %d', async (host, status) => {
    const answer = await anApp().request('/api/v1/state', { headers: { host } });
    expect(answer.status).toBe(status);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('refuses requests that pages of other sites send', async () => {
    const { request } = anApp();
    const status = async (headers: Record<string, string>) =>
      (await request('/api/v1/state', { headers })).status;
    expect(await status({ origin: 'http://127.0.0.1:8081' })).toBe(200);
    expect(await status({ origin: 'https://scaler.example' })).toBe(200);
    expect(await status({ origin: 'https://attacker.example' })).toBe(403);
    expect(await status({ origin: 'null' })).toBe(403);
    expect(await status({ 'sec-fetch-site': 'cross-site' })).toBe(403);
  });

  it.each([
    ['GET', 'document', 200],
    ['GET', 'iframe', 403],
    ['POST', 'document', 403],
  ])('answers a link of another site: %s of a %s with %d', async (method, target, status) => {
    const headers = {
      'sec-fetch-site': 'cross-site',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': target,
    };
    expect((await anApp().request('/index.html', { method, headers })).status).toBe(status);
  });
});

describe('actions of the dashboard', () => {
  it('need the token', async () => {
    const { post, requested } = anApp();
    const path = '/api/v1/pools/workers/resume';
    expect((await post(path, undefined)).status).toBe(401);
    expect((await post(path, 'wrong')).status).toBe(401);
    expect(requested).toEqual([]);
    expect((await post(path, 'correct')).status).toBe(202);
    expect(requested).toEqual(['resume workers']);
  });

  it.each([undefined, ''])('are disabled without a token (%j)', async (token) => {
    const { post, requested } = anApp({ readToken: () => Promise.resolve(token) });
    expect((await post('/api/v1/pools/workers/resume', token ?? 'any')).status).toBe(403);
    expect(requested).toEqual([]);
  });

  it('are disabled while the token cannot be read, without a word about its file', async () => {
    const readToken = () => Promise.reject(new Error('ENOENT: /etc/pvescaler/pasted-secret'));
    const answer = await anApp({ readToken }).post('/api/v1/pools/workers/resume', 'any');
    expect(answer.status).toBe(403);
    const { error } = (await answer.json()) as { readonly error: string };
    expect(error).toMatch(/dashboardTokenFile is not set, empty or cannot be read/);
    expect(error).not.toContain('pasted-secret');
  });

  it('are carried out with valid settings only', async () => {
    const { post, requested } = anApp();
    const scale = '/api/v1/pools/workers/scale';
    for (const body of [undefined, {}, { to: -1 }, { to: 1.5 }, { to: '3' }])
      expect((await post(scale, 'correct', body)).status).toBe(400);
    await post(scale, 'correct', { to: 3 });
    await post('/api/v1/pools/workers/pause', 'correct', { minutes: 60 });
    await post('/api/v1/machines/m-1/drain', 'correct');
    await post('/api/v1/machines/m-1/delete', 'correct');
    expect(requested).toEqual(['scale workers 3', 'pause workers 60', 'drain m-1', 'delete m-1']);
  });

  it.each([
    ['{"to": ', 400, 'the body is not valid JSON'],
    ['', 400, 'the body is not valid JSON'],
    ['[3]', 400, 'the body: Invalid input: expected object, received array'],
    ['{"to": -1}', 400, 'to: Too small: expected number to be >=0'],
    [`{"to": 3, "x": "${'x'.repeat(5_000)}"}`, 413, 'the body has more than 4096 bytes'],
  ])('refuse the body %s with %d', async (body, status, error) => {
    const { request, requested } = anApp();
    const headers = { authorization: 'Bearer correct' };
    const path = '/api/v1/pools/workers/scale';
    const answer = await request(path, { method: 'POST', headers, body });
    expect([answer.status, await answer.json()]).toEqual([status, { error }]);
    expect(requested).toEqual([]);
  });

  it('answer with the status of the class of the error, and why a request was refused', async () => {
    const { actions } = { actions: {} as DashboardSources['actions'] };
    const { post } = anApp({
      actions: {
        ...actions,
        scalePool: () => Promise.reject(new NoCapacity('POOL_AT_MAXIMUM', 'at most 5')),
        resumePool: () => Promise.reject(new NotFound('POOL_NOT_FOUND', 'no pool x')),
      },
    });
    const answer = await post('/api/v1/pools/workers/scale', 'correct', { to: 9 });
    expect([answer.status, await answer.json()]).toMatchObject([503, { error: 'at most 5' }]);
    const unknown = await post('/api/v1/pools/x/resume', 'correct');
    expect(unknown.status).toBe(404);
    expect(unknown.headers.get('x-content-type-options')).toBe('nosniff');
  });
});

describe('the description of the API', () => {
  it('names every path', async () => {
    const { app, request } = anApp();
    const { paths } = (await (await request('/api/v1/openapi.json')).json()) as {
      paths: Record<string, object>;
    };
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const routes = app.routes
      .filter(({ path }) => path.startsWith('/api/'))
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`);
    expect(routes).toContain('POST /api/v1/pools/{name}/scale');
    expect(described.toSorted()).toEqual([...new Set(routes)].toSorted());
  });

  it('describes every live event', async () => {
    const clock = new VirtualClock();
    let state = STATE;
    const { request } = anApp({ clock, readState: () => Promise.resolve(state) });
    const { paths, components } = (await (await request('/api/v1/openapi.json')).json()) as {
      paths: Record<string, { get: { summary: string } }>;
      components: { schemas: { StateChange: { properties: object } } };
    };
    const reader = (await request('/api/v1/events')).body!.getReader();
    const decoder = new TextDecoder();
    let received = '';
    const readAll = (async () => {
      for (let next = await reader.read(); !next.done; next = await reader.read())
        received += decoder.decode(next.value);
    })();
    await clock.advance(1_000);
    state = {
      ...STATE,
      at: 2_000,
      problems: ['a problem'],
      machines: [aMachine('m-1', 'booting')],
    };
    for (let second = 0; second < 20; second += 1) await clock.advance(1_000);
    await reader.cancel();
    await readAll;
    const names = new Set([...received.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name));
    expect([...names]).toEqual(['state', 'change', 'alive']);
    for (const name of names) expect(paths['/api/v1/events']?.get.summary).toContain(`\`${name}\``);
    const change = JSON.parse(/^event: change\ndata: (.*)$/m.exec(received)?.[1] ?? '');
    expect(Object.keys(components.schemas.StateChange.properties)).toEqual(Object.keys(change));
  });
});

describe('live events', () => {
  it('begin with the state and continue with what changed', async () => {
    const clock = new VirtualClock();
    let state = STATE;
    const { request } = anApp({ clock, readState: () => Promise.resolve(state) });
    const reader = (await request('/api/v1/events')).body!.getReader();
    const next = async () => new TextDecoder().decode((await reader.read()).value);
    expect(await next()).toContain('event: state');
    state = { ...STATE, at: 2_000, machines: [aMachine('m-1', 'booting')] };
    const event = next();
    await clock.advance(1_000);
    expect(await event).toContain('"machines":[{"id":"m-1"');
    await reader.cancel();
  });

  it('end for a page that has stopped reading', async () => {
    const clock = new VirtualClock();
    let at = 0;
    const readState = () => Promise.resolve({ ...STATE, problems: [`problem ${(at += 1)}`] });
    const { request } = anApp({ clock, readState });
    const reader = (await request('/api/v1/events')).body!.getReader();
    await reader.read();
    for (let second = 0; second < 100; second += 1) await clock.advance(1_000);
    const readWhileOpen = at;
    await clock.advance(10_000);
    expect(at).toBe(readWhileOpen);
    expect(readWhileOpen).toBeLessThan(50);
  });

  it('end without an error in the log while the state cannot be read', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const readState = () => Promise.reject(new NoCapacity('POOL_AT_MAXIMUM', 'not open yet'));
    const response = await anApp({ readState }).request('/api/v1/events');
    expect(await response.text()).toBe('');
    expect(logged).not.toHaveBeenCalled();
    logged.mockRestore();
  });

  it('begin with the same state for pages that connect at the same time', async () => {
    const reads: ((state: DashboardState) => void)[] = [];
    const read = () => new Promise<DashboardState>((resolve) => void reads.push(resolve));
    const live = new LiveState({ read, clock: new VirtualClock(), intervalMs: 1_000 });
    const pages = [live.subscribe(() => undefined), live.subscribe(() => undefined)];
    for (const [index, resolve] of reads.entries()) resolve({ ...STATE, at: index });
    const [first, second] = await Promise.all(pages);
    expect(second).toBe(first);
  });

  it('contain only machines that changed, and those that are gone', () => {
    const machines = [aMachine('a', 'ready'), aMachine('b', 'booting'), aMachine('c', 'ready')];
    const after = [aMachine('a', 'ready'), aMachine('b', 'ready')];
    expect(findChange({ ...STATE, machines }, { ...STATE, at: 2_000, machines: after })).toEqual({
      changed: { at: 2_000 },
      machines: [aMachine('b', 'ready')],
      removedMachines: ['c'],
    });
  });

  it('contain a part that has ended', () => {
    expect(findChange({ ...STATE, driver: 'a' }, STATE)?.changed).toEqual({
      at: 1_000,
      driver: null,
    });
  });

  it('are not sent while only the time changes', () => {
    expect(findChange(STATE, { ...STATE, at: 9_000 })).toBeUndefined();
  });
});
