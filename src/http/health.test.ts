// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHealthApp, listen } from './index.ts';

const HEALTHY = {
  health: () => ({ healthy: true, problems: [] }),
  readiness: () => ({ ready: true, waitingFor: [], limits: [], leader: true }),
  metrics: { contentType: 'text/plain; version=0.0.4', read: () => Promise.resolve('a 1\n') },
};

describe('health endpoints', () => {
  it('return 200 while the process is healthy and ready', async () => {
    const app = createHealthApp(HEALTHY);
    expect((await app.request('/healthz')).status).toBe(200);
    expect(await (await app.request('/readyz')).json()).toMatchObject({
      ready: true,
      leader: true,
    });
    const metrics = await app.request('/metrics');
    expect(metrics.headers.get('content-type')).toBe('text/plain; version=0.0.4');
    expect(await metrics.text()).toBe('a 1\n');
  });

  it('return 503 with the reason otherwise', async () => {
    const app = createHealthApp({
      ...HEALTHY,
      health: () => ({ healthy: false, problems: ['no reconcile progress for 130 s'] }),
      readiness: () => ({
        ready: false,
        waitingFor: ['Proxmox region lab: no response'],
        limits: [],
        leader: false,
      }),
    });
    const health = await app.request('/healthz');
    expect([health.status, await health.json()]).toMatchObject([
      503,
      { problems: ['no reconcile progress for 130 s'] },
    ]);
    const readiness = await app.request('/readyz');
    expect([readiness.status, await readiness.json()]).toMatchObject([
      503,
      { waitingFor: ['Proxmox region lab: no response'] },
    ]);
  });

  it('return 404 for disabled metrics and unknown paths', async () => {
    const app = createHealthApp({ ...HEALTHY, metrics: undefined });
    expect((await app.request('/metrics')).status).toBe(404);
    expect((await app.request('/')).status).toBe(404);
  });

  it('do not reveal internal errors', async () => {
    const read = () => Promise.reject(new Error('secret path'));
    const app = createHealthApp({ ...HEALTHY, metrics: { contentType: 'x', read } });
    const answer = await app.request('/metrics');
    expect([answer.status, await answer.text()]).toEqual([500, '{"error":"internal error"}']);
  });

  it('report CONFIG_INVALID when the address is in use', async () => {
    const first = await listen(
      createHealthApp(HEALTHY),
      { host: '127.0.0.1', port: 0 },
      'http.health',
    );
    onTestFinished(() => first.close());
    const { port } = new URL(first.url);
    await expect(
      listen(createHealthApp(HEALTHY), { host: '127.0.0.1', port: Number(port) }, 'http.health'),
    ).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: /EADDRINUSE/ });
  });
});
