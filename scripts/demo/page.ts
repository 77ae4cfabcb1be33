// SPDX-License-Identifier: Apache-2.0
// The dashboard of the demo: that of the daemon, with one more section, which says what happens and lets a person add load.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Context, Hono } from 'hono';
import { guardRequests, requireToken } from '../../src/http/index.ts';

export interface DemoPanel {
  readonly title: string;
  readonly text: string;
  /** What to look at on the page. */
  readonly look: string;
  /** The day is over: a person may act. */
  readonly isIdle: boolean;
}

/** By name; each returns what it did. */
export type DemoActions = Readonly<Record<string, DemoAction>>;

interface DemoAction {
  readonly label: string;
  run(): string;
}

export interface DemoPageOptions {
  /** Of the daemon's dashboard. */
  readonly target: string;
  readonly token: string;
  readonly panel: () => DemoPanel;
  readonly actions: DemoActions | undefined;
}

const OWN_FILES = {
  'demo.js': { file: 'panel.js', type: 'text/javascript; charset=utf-8' },
  'demo.css': { file: 'panel.css', type: 'text/css; charset=utf-8' },
};
const SECTION = `
      <section id="demo" aria-labelledby="demo-title">
        <h2 id="demo-title">Demo</h2>
        <div aria-live="polite"><p id="demo-text"></p><p id="demo-look"></p></div>
        <p id="demo-actions" class="buttons"></p>
      </section>`;

export function createDemoPage({ target, token, panel, actions = {} }: DemoPageOptions): Hono {
  const app = new Hono();
  app.use(guardRequests([]));
  app.get('/api/demo', (context) =>
    context.json({
      ...panel(),
      actions: Object.entries(actions).map(([name, { label }]) => ({ name, label })),
    }),
  );
  app.post(
    '/api/demo/:name',
    requireToken(() => Promise.resolve(token)),
    (context) => {
      const action = actions[context.req.param('name')];
      if (action === undefined) return context.json({ error: 'there is no such action' }, 404);
      if (!panel().isIdle) return context.json({ error: 'the day is not over yet' }, 409);
      return context.json({ message: action.run() }, 202);
    },
  );
  for (const [name, { file, type }] of Object.entries(OWN_FILES)) {
    const text = readFileSync(join(import.meta.dirname, file), 'utf8');
    app.get(`/${name}`, (context) => context.body(text, 200, { 'content-type': type }));
  }
  app.all('*', (context) => forward(target, context));
  return app;
}

/** The daemon checks the Host and Origin of its own address, so those of the demo's address, already checked, are not sent. */
async function forward(target: string, context: Context): Promise<Response> {
  const { raw, path, method } = context.req;
  const headers = new Headers(raw.headers);
  for (const name of ['host', 'origin', 'connection', 'accept-encoding', 'content-length'])
    headers.delete(name);
  const { search } = new URL(raw.url);
  const hasBody = method !== 'GET' && method !== 'HEAD';
  try {
    const response = await fetch(`${target}${path}${search}`, {
      method,
      headers,
      redirect: 'manual',
      signal: raw.signal,
      ...(hasBody && { body: await raw.arrayBuffer() }),
    });
    const { status } = response;
    const answered = new Headers(response.headers);
    // Of the connection to the daemon; a page with one more section is longer than what the daemon sent.
    for (const name of ['connection', 'keep-alive', 'transfer-encoding', 'content-length'])
      answered.delete(name);
    if (path === '/index.html')
      return new Response(addSection(await response.text()), { status, headers: answered });
    const body = response.body === null ? null : ReadableStream.from(copy(response.body));
    return new Response(body, { status, headers: answered });
  } catch {
    return context.json({ error: 'pvescaler does not answer yet' }, 502);
  }
}

/** Ends without an error when the page is closed or the daemon ends, which is no problem of the demo. */
async function* copy(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch {
    // The reader is gone.
  }
}

function addSection(page: string): string {
  return page.replace('<main>', `<main>${SECTION}`).replace(
    '</head>',
    `  <link rel="stylesheet" href="demo.css" />
    <script type="module" src="demo.js"></script>
  </head>`,
  );
}
