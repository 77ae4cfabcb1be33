// SPDX-License-Identifier: Apache-2.0
// An API server that only lists and watches, in a separate process, so that its memory and CPU time are not measured.
// Usage: node server.ts NODES PODS UPDATES; prints its port.
import { EventEmitter, once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { nodeObject, podObject } from './objects.ts';

const [nodes = 0, pods = 0, updates = 0] = process.argv.slice(2).map(Number);
/** One update in this many is about a node. */
const NODE_EVERY = 10;

/** Both lists are complete before the first event. */
const complete = new EventEmitter();
const listed = new Set<string>();

function page(kind: 'nodes' | 'pods', query: URLSearchParams): string {
  const total = kind === 'nodes' ? nodes : pods;
  const from = Number(query.get('continue') ?? 0);
  const end = Math.min(total, from + Number(query.get('limit') ?? total));
  const items = Array.from({ length: end - from }, (_, at) => {
    const serial = { index: from + at, version: 1, nodes };
    return kind === 'nodes' ? nodeObject(serial) : podObject(serial);
  });
  if (end === total) listed.add(kind);
  if (listed.size === 2) complete.emit('complete');
  const metadata = { resourceVersion: '1', ...(end < total && { continue: String(end) }) };
  return JSON.stringify({ metadata, items });
}

async function stream(kind: 'nodes' | 'pods', response: ServerResponse): Promise<void> {
  if (listed.size < 2) await once(complete, 'complete');
  for (let update = 0; update < updates; update += 1) {
    if ((update % NODE_EVERY === 0) !== (kind === 'nodes')) continue;
    const version = update + 2;
    const object =
      kind === 'nodes'
        ? nodeObject({ index: Math.floor(update / NODE_EVERY) % nodes, version, nodes })
        : podObject({ index: (update * 7) % pods, version, nodes });
    await write(response, { type: 'MODIFIED', object });
  }
  // The client waits for these last events of each collection.
  const last = { index: 0, version: updates + 2, nodes };
  const object = kind === 'nodes' ? nodeObject(last, { last: 'true' }) : podObject(last);
  await write(response, { type: 'MODIFIED', object });
  if (kind === 'pods') {
    const gone = podObject({ index: 1, version: updates + 3, nodes });
    await write(response, { type: 'DELETED', object: gone });
  }
}

async function write(response: ServerResponse, event: object): Promise<void> {
  if (!response.write(`${JSON.stringify(event)}\n`)) await once(response, 'drain');
}

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://bench.example');
  const kind = (['nodes', 'pods'] as const).find((one) => url.pathname.endsWith(`/${one}`));
  response.setHeader('content-type', 'application/json');
  if (kind === undefined) {
    // The other collections are empty and do not change.
    if (url.searchParams.get('watch') === '1') response.flushHeaders();
    else response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items: [] }));
  } else if (url.searchParams.get('watch') === '1') {
    response.flushHeaders();
    stream(kind, response).catch(() => response.destroy());
  } else {
    response.end(page(kind, url.searchParams));
  }
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(typeof address === 'object' ? address?.port : '');
});
// Exits with its parent process.
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
