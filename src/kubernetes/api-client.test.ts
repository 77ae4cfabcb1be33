// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../ports/errors.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { Transport, TransportResponse } from '../ports/transport.ts';
import { ApiClient } from './api-client.ts';

type Answer = number | 'unreachable' | 'broken-stream';

function aClient(...answers: readonly Answer[]) {
  const clock = new VirtualClock();
  const next = answers.values();
  const transport: Transport = {
    request: () => {
      const { value: answer = 200 } = next.next();
      if (answer === 'unreachable')
        return Promise.reject(new Unreachable('KUBERNETES_UNREACHABLE', 'no connection'));
      const status = answer === 'broken-stream' ? 200 : answer;
      const response: Partial<TransportResponse> = { status, body: bodyOf(answer) };
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the client reads no other field
      return Promise.resolve(response as TransportResponse);
    },
    close: () => Promise.resolve(),
  };
  const options = { transport, server: 'https://api', clock, requestTimeoutMs: 10_000 };
  const client = new ApiClient(options);
  const read = () => client.requestOrThrow({ path: '/', operation: 'read it' });
  return { clock, client, read };
}

async function* bodyOf(answer: Answer): AsyncIterable<Uint8Array> {
  yield Buffer.from('{}');
  if (answer === 'broken-stream') throw new Unreachable('KUBERNETES_UNREACHABLE', 'reset');
}

describe('a refused request', () => {
  it('is a missing permission', async () => {
    const { read } = aClient(403);
    await expect(read()).rejects.toMatchObject({ code: 'PERMISSION_MISSING' });
  });

  it('is none right after the server was unreachable: it answers before it has read the roles', async () => {
    const { clock, read } = aClient('unreachable', 403, 403);
    await expect(read()).rejects.toMatchObject({ code: 'KUBERNETES_UNREACHABLE' });
    await clock.advance(29_000);
    await expect(read()).rejects.toMatchObject({
      code: 'KUBERNETES_UNREACHABLE',
      message: expect.stringMatching(
        /^read it: refused right after the API server was unreachable/,
      ),
      facts: { requestSent: false },
    });
    await clock.advance(1_000);
    await expect(read()).rejects.toMatchObject({ code: 'PERMISSION_MISSING' });
  });

  it('is none right after a watch has broken, also if it is another watch', async () => {
    const { client, read } = aClient('broken-stream', 403, 403);
    const watch = { path: '/', operation: 'watch it' };
    const opened = await client.openStream(watch);
    const readAll = async () => {
      if (opened.ok) for await (const _ of opened.body);
    };
    await expect(readAll()).rejects.toMatchObject({ message: 'reset' });
    const unreachable = { code: 'KUBERNETES_UNREACHABLE' };
    await expect(read()).rejects.toMatchObject(unreachable);
    await expect(client.openStream(watch)).rejects.toMatchObject(unreachable);
  });
});
