// SPDX-License-Identifier: Apache-2.0
import { once } from 'node:events';
import { connect } from 'node:http2';
import { expect, it } from 'vitest';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { ServerReflection } from '../gen/reflection/reflection_pb.js';
import { listen } from './listener.ts';
import { Services } from './services.ts';

const ANSWERS = 30;
const ANSWER_BYTES = 200_000;

it('waits with each message of many until the one before is read, and leaves nothing behind', async () => {
  const warnings: Error[] = [];
  const heed = (warning: Error) => void warnings.push(warning);
  // oxlint-disable-next-line no-restricted-globals -- listeners that pile up are told to the process only
  process.on('warning', heed);
  const clock = new VirtualClock();
  let written = 0;
  const services = new Services().add(ServerReflection, {
    async *serverReflectionInfo() {
      for (; written < ANSWERS; written += 1) yield { validHost: 'x'.repeat(ANSWER_BYTES) };
    },
  });
  const listener = await listen({
    clock,
    services,
    around: async (_rpc, work) => work(),
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
  call.on('data', (piece: Buffer) => {
    bytes += piece.length;
  });
  const [trailers] = await once(call, 'trailers');
  await once(call, 'close');
  expect(trailers).toMatchObject({ 'grpc-status': '0' });
  expect(bytes).toBeGreaterThan(ANSWERS * ANSWER_BYTES);
  session.close();
  await listener.close();
  // oxlint-disable-next-line no-restricted-globals -- as above
  process.off('warning', heed);
  expect(warnings).toEqual([]);
});
