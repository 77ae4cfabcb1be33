// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished } from 'vitest';
import { healthApp, listen } from './index.ts';

const WELL = {
  health: () => ({ healthy: true, problems: [] }),
  readiness: () => ({ ready: true, waitingFor: [], limits: [], leader: true }),
  metrics: { contentType: 'text/plain; version=0.0.4', read: () => Promise.resolve('a 1\n') },
};

describe('the health listener', () => {
  it('answers 200 while all is well', async () => {
    const app = healthApp(WELL);
    expect((await app.request('/healthz')).status).toBe(200);
    expect(await (await app.request('/readyz')).json()).toMatchObject({
      ready: true,
      leader: true,
    });
    const metrics = await app.request('/metrics');
    expect(metrics.headers.get('content-type')).toBe('text/plain; version=0.0.4');
    expect(await metrics.text()).toBe('a 1\n');
  });

  it('answers 503, with the reason, when it is not', async () => {
    const app = healthApp({
      ...WELL,
      health: () => ({ healthy: false, problems: ['the loop has not moved for 130 s'] }),
      readiness: () => ({
        ready: false,
        waitingFor: ['Proxmox region lab: no answer'],
        limits: [],
        leader: false,
      }),
    });
    const health = await app.request('/healthz');
    expect([health.status, await health.json()]).toMatchObject([
      503,
      { problems: ['the loop has not moved for 130 s'] },
    ]);
    const readiness = await app.request('/readyz');
    expect([readiness.status, await readiness.json()]).toMatchObject([
      503,
      { waitingFor: ['Proxmox region lab: no answer'] },
    ]);
  });

  it('has no metrics when they are switched off, and nothing else', async () => {
    const app = healthApp({ ...WELL, metrics: undefined });
    expect((await app.request('/metrics')).status).toBe(404);
    expect((await app.request('/')).status).toBe(404);
  });

  it('says nothing of an inner fault', async () => {
    const read = () => Promise.reject(new Error('secret path'));
    const app = healthApp({ ...WELL, metrics: { contentType: 'x', read } });
    const answer = await app.request('/metrics');
    expect([answer.status, await answer.text()]).toEqual([500, '{"error":"internal error"}']);
  });

  it('listens where it is told, and says so when it cannot', async () => {
    const first = await listen(healthApp(WELL), { host: '127.0.0.1', port: 0 });
    onTestFinished(() => first.close());
    const { port } = new URL(first.url);
    await expect(
      listen(healthApp(WELL), { host: '127.0.0.1', port: Number(port) }),
    ).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: /EADDRINUSE/ });
  });
});
