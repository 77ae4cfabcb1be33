// SPDX-License-Identifier: Apache-2.0
// The dashboard: its files, the state as JSON and as server-sent events, and actions for those who have the token.
import { Hono, type HonoRequest } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { streamSSE } from 'hono/streaming';
import type { ZodType } from 'zod';
import type { Clock } from '../ports/clock.ts';
import { PvescalerError } from '../ports/errors.ts';
import { type DashboardState, pauseRequest, scaleRequest } from './dashboard-contract.ts';
import { LiveState } from './live-state.ts';
import { describeApi } from './openapi.ts';
import { guardRequests, requireToken } from './request-guard.ts';

/** Each returns a sentence that says what was requested. */
export interface DashboardActions {
  scalePool(pool: string, to: number): Promise<string>;
  pausePool(pool: string, minutes: number): Promise<string>;
  resumePool(pool: string): Promise<string>;
  drainMachine(machine: string): Promise<string>;
  deleteMachine(machine: string): Promise<string>;
}

export interface DashboardSources {
  readonly readState: () => Promise<DashboardState>;
  readonly actions: DashboardActions;
  /** Read for each action, so that a changed file counts at once. */
  readonly readToken: () => Promise<string | undefined>;
  /** A file of the page; undefined when there is none of that name. */
  readonly readFile: (name: string) => Promise<string | undefined>;
  /** Names beside addresses and `localhost` by which the page may be opened. */
  readonly hostNames: readonly string[];
  readonly clock: Clock;
}

const FILES: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'app.js': 'text/javascript; charset=utf-8',
  'style.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
};

const INTERVAL_MS = 1_000;
/** Proxies close connections that are silent for longer. */
const KEEP_ALIVE_MS = 15_000;
/** Events that a page may leave unread. */
const MAX_UNREAD = 30;
/** Of the request of an action, which has one number. */
const MAX_BODY_BYTES = 4_096;

export function createDashboardApp(sources: DashboardSources): Hono {
  const { readState, readFile, hostNames, clock } = sources;
  const app = new Hono();
  const live = new LiveState({ read: readState, clock, intervalMs: INTERVAL_MS });
  app.use(guardRequests(hostNames));
  app.get('/api/v1/state', async (context) => context.json(await readState()));
  app.get('/api/v1/openapi.json', (context) => context.json(describeApi()));
  app.get('/api/v1/events', (context) =>
    streamSSE(context, async (stream) => {
      const closed = Promise.withResolvers<void>();
      const closing = new AbortController();
      stream.onAbort(() => closed.resolve());
      let unread = 0;
      const send = async (event: string, data: unknown) => {
        // A page that has stopped reading would fill the memory. It connects again and gets the whole state.
        if (unread >= MAX_UNREAD) return stream.abort();
        unread += 1;
        await stream.writeSSE({ event, data: JSON.stringify(data) }).catch(() => closed.resolve());
        unread -= 1;
      };
      const onChange = (change: unknown) => void send('change', change);
      const state = await live.subscribe(onChange).catch(() => undefined);
      // The page connects again; /readyz says why nothing can be read.
      if (state === undefined) return;
      void send('state', state);
      void keepAlive(clock, closing.signal, () => void send('alive', {}));
      await closed.promise;
      closing.abort();
      live.unsubscribe(onChange);
    }),
  );
  addActions(app, sources);
  app.get('/', (context) => context.redirect('/index.html'));
  app.get('/:name', async (context) => {
    const name = context.req.param('name');
    const type = FILES[name];
    const text = type === undefined ? undefined : await readFile(name);
    if (type === undefined || text === undefined) return context.json({ error: 'not found' }, 404);
    return context.body(text, 200, { 'content-type': type, 'cache-control': 'no-cache' });
  });
  app.notFound((context) => context.json({ error: 'not found' }, 404));
  app.onError((error, context) => {
    // Other messages may contain confidential data.
    if (!(error instanceof PvescalerError)) return context.json({ error: 'internal error' }, 500);
    const { message, code, hint, externalCodes } = error;
    return Response.json({ error: message, code, hint }, { status: externalCodes.httpStatus });
  });
  return app;
}

async function keepAlive(clock: Clock, signal: AbortSignal, send: () => void): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(KEEP_ALIVE_MS, { signal }).catch(() => undefined);
    if (!signal.aborted) send();
  }
}

function addActions(app: Hono, { actions, readToken }: DashboardSources): void {
  const limit = bodyLimit({
    maxSize: MAX_BODY_BYTES,
    onError: (context) =>
      context.json({ error: `the body has more than ${MAX_BODY_BYTES} bytes` }, 413),
  });
  const add = <Body>(
    path: string,
    body: ZodType<Body> | undefined,
    act: (name: string, body: Body) => Promise<string>,
  ) =>
    app.post(path, requireToken(readToken), limit, async (context) => {
      const read = body === undefined ? {} : await readBody(context.req, body);
      if (read.error !== undefined) return context.json({ error: read.error }, 400);
      const name = context.req.param('name') ?? '';
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- undefined only without a schema
      return context.json({ message: await act(name, read.value as Body) }, 202);
    });
  add('/api/v1/pools/:name/scale', scaleRequest, (pool, { to }) => actions.scalePool(pool, to));
  add('/api/v1/pools/:name/pause', pauseRequest, (pool, { minutes }) =>
    actions.pausePool(pool, minutes),
  );
  add('/api/v1/pools/:name/resume', undefined, (pool) => actions.resumePool(pool));
  add('/api/v1/machines/:name/drain', undefined, (machine) => actions.drainMachine(machine));
  add('/api/v1/machines/:name/delete', undefined, (machine) => actions.deleteMachine(machine));
}

interface ReadBody<Body> {
  readonly value?: Body;
  /** What is wrong with it; absent if it is valid. */
  readonly error?: string;
}

async function readBody<Body>(
  request: HonoRequest,
  schema: ZodType<Body>,
): Promise<ReadBody<Body>> {
  const given: unknown = await request.json().catch(() => undefined);
  if (given === undefined) return { error: 'the body is not valid JSON' };
  const { success, data, error } = schema.safeParse(given);
  if (success) return { value: data };
  const [issue] = error.issues;
  return { error: `${issue?.path.join('.') || 'the body'}: ${issue?.message}` };
}
