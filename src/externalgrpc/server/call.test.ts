// SPDX-License-Identifier: Apache-2.0
import { once } from 'node:events';
import { connect } from 'node:http2';
import { expect, it } from 'vitest';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { ServerReflection } from '../gen/reflection/reflection_pb.js';
import { listen } from './listener.ts';
import { Services } from './services.ts';

const RESPONSES = 30;
const RESPONSE_BYTES = 200_000;

it('waits for the client to read before writing the next message of a stream', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  // oxlint-disable-next-line no-restricted-globals -- Node reports leaked listeners on the process only
  process.on('warning', onWarning);
  const clock = new VirtualClock();
  let written = 0;
  const services = new Services().add(ServerReflection, {
    async *serverReflectionInfo() {
      for (; written < RESPONSES; written += 1) yield { validHost: 'x'.repeat(RESPONSE_BYTES) };
    },
  });
  const listener = await listen({
    clock,
    services,
    intercept: async (_rpc, work) => work(),
    listen: { host: '127.0.0.1', port: 0 },
    security: { kind: 'plaintext' },
    maxConcurrentCalls: 10,
    read: () => Promise.reject(new Error('no files here')),
    warn: () => undefined,
  });
  const session = connect(`http://127.0.0.1:${listener.port}`);
  const call = session.request({
    ':method': 'POST',
    ':path': `/${ServerReflection.typeName}/ServerReflectionInfo`,
    'content-type': 'application/grpc',
  });
  call.end();
  await once(call, 'response');
  expect(written).toBeLessThan(2);
  let bytes = 0;
  call.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  const [trailers] = await once(call, 'trailers');
  await once(call, 'close');
  expect(trailers).toMatchObject({ 'grpc-status': '0' });
  expect(bytes).toBeGreaterThan(RESPONSES * RESPONSE_BYTES);
  session.close();
  await listener.close();
  // oxlint-disable-next-line no-restricted-globals -- as above
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});
