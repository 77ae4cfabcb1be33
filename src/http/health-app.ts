// SPDX-License-Identifier: Apache-2.0
// Health, readiness and metrics. Requires no authentication, so responses contain nothing confidential.
import { Hono } from 'hono';
import type { Health, Readiness } from './contract.ts';

export interface HealthSources {
  readonly health: () => Health;
  readonly readiness: () => Readiness;
  /** Undefined: metrics are disabled. */
  readonly metrics: { readonly contentType: string; read(): Promise<string> } | undefined;
}

export function createHealthApp({ health, readiness, metrics }: HealthSources): Hono {
  const app = new Hono();
  app.get('/healthz', (context) => {
    const body = health();
    return context.json(body, body.healthy ? 200 : 503);
  });
  app.get('/readyz', (context) => {
    const body = readiness();
    return context.json(body, body.ready ? 200 : 503);
  });
  if (metrics !== undefined) {
    app.get('/metrics', async (context) => {
      const text = await metrics.read();
      return context.body(text, 200, { 'content-type': metrics.contentType });
    });
  }
  app.notFound((context) => context.json({ error: 'not found' }, 404));
  // The message may contain confidential data.
  app.onError((_error, context) => context.json({ error: 'internal error' }, 500));
  return app;
}
