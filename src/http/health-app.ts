// SPDX-License-Identifier: Apache-2.0
// Health, readiness and metrics for whoever watches over the process. Asks no password: says nothing that needs one.
import { Hono } from 'hono';
import type { Health, Readiness } from './contract.ts';

export interface HealthSources {
  readonly health: () => Health;
  readonly readiness: () => Readiness;
  /** Undefined: metrics are switched off. */
  readonly metrics: { readonly contentType: string; read(): Promise<string> } | undefined;
}

export function healthApp({ health, readiness, metrics }: HealthSources): Hono {
  const app = new Hono();
  app.get('/healthz', (context) => {
    const answer = health();
    return context.json(answer, answer.healthy ? 200 : 503);
  });
  app.get('/readyz', (context) => {
    const answer = readiness();
    return context.json(answer, answer.ready ? 200 : 503);
  });
  if (metrics !== undefined) {
    app.get('/metrics', async (context) => {
      const text = await metrics.read();
      return context.body(text, 200, { 'content-type': metrics.contentType });
    });
  }
  app.notFound((context) => context.json({ error: 'not found' }, 404));
  // What went wrong in here may quote anything.
  app.onError((_error, context) => context.json({ error: 'internal error' }, 500));
  return app;
}
