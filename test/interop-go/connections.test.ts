// SPDX-License-Identifier: Apache-2.0
// A connection over its life: pings, idleness, the server's farewell and its return.
import { describe, expect, it } from 'vitest';
import { serveExternalGrpc } from '../../src/externalgrpc/index.ts';
import { aGroup, aPool } from '../interop/stage.ts';
import { VERSIONS } from './build.ts';
import { type GoStage, targetOf, withGo } from './on-stage.ts';

/** Another process in the place of the one that ended. */
function serveAgain({ fleet, clock, face }: GoStage) {
  return serveExternalGrpc({
    fleet,
    clock,
    settings: {
      groups: [aGroup(aPool())],
      pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 },
      gpu: { label: 'autoscaler.proxmox/gpu', types: [] },
    },
    listen: { host: '127.0.0.1', port: face.port },
    tls: undefined,
    insecure: true,
    expander: undefined,
    read: () => Promise.reject(new Error('no files here')),
    warn: () => undefined,
  });
}

/** Said once or, before the connection is closed, once more; always without an error. */
function expectGoodbye(goAways: readonly number[]): void {
  expect(new Set(goAways)).toEqual(new Set([0]));
}

describe.each(VERSIONS)('grpc-go %s', (_name, version) => {
  it(
    'may ping as often as it likes, with and without calls',
    withGo(version, {}, async (stage) => {
      const go = await stage.process.dial({ target: targetOf(stage), keepaliveMs: 10 });
      expect((await go.call('NodeGroups')).code).toBe('OK');
      await go.until({ pings: 200 });
      const watch = go.watch();
      expect((await watch.outcome).status).toBe('SERVING');
      await go.until({ pings: 400 });
      await watch.cancel();
      expect((await go.call('NodeGroups')).code).toBe('OK');
      expect(await go.seen()).toMatchObject({ connections: 1, open: 1, goAways: [] });
    }),
  );

  it(
    'keeps its connection when it calls nothing for half an hour',
    withGo(version, {}, async ({ go, clock }) => {
      expect((await go.call('NodeGroups')).code).toBe('OK');
      await clock.advance(30 * 60_000);
      expect((await go.call('NodeGroups')).code).toBe('OK');
      expect(await go.seen()).toMatchObject({ connections: 1, open: 1, goAways: [] });
    }),
  );

  it(
    'connects again, unnoticed, after it was told to go for its idleness',
    withGo(version, {}, async ({ go, clock }) => {
      expect((await go.call('NodeGroups')).code).toBe('OK');
      await clock.advance(61 * 60_000);
      expect((await go.call('NodeGroups')).code).toBe('OK');
      const { connections, goAways } = await go.seen();
      expect(connections).toBe(2);
      expectGoodbye(goAways);
    }),
  );

  it(
    'waits for a server that is not there yet, and loses nothing to one that comes again',
    withGo(version, {}, async (stage) => {
      const { go, face, clock } = stage;
      expect((await go.call('NodeGroups')).code).toBe('OK');
      const closing = face.close();
      await go.until({ state: 'TRANSIENT_FAILURE' });
      await closing;
      expect((await go.call('NodeGroups')).code).toBe('Unavailable');
      const waiting = go.begin('NodeGroups', { waitForReady: true, timeoutNs: 60e9 });
      const again = await serveAgain(stage);
      try {
        expect((await waiting.outcome).code).toBe('OK');
        expectGoodbye((await go.seen()).goAways);
      } finally {
        await go.close();
        const ending = again.close();
        await clock.advance(10_000);
        await ending;
      }
    }),
  );

  it(
    'loses no call when servers follow one another on the same port',
    withGo(version, {}, async (stage) => {
      const { go } = stage;
      await go.call('NodeGroups');
      const options = { waitForReady: true, timeoutNs: 60e9 };
      const calls = go.begin('NodeGroups', { ...options, count: 40, parallel: 50 });
      let { face } = stage;
      for (let time = 0; time < 3; time += 1) {
        const ended = face.close();
        face = await ended.then(() => serveAgain(stage));
        expect((await go.call('NodeGroups', { ...options, count: 20 })).codes).toEqual({ OK: 20 });
      }
      const { codes, message } = await calls.outcome;
      expect({ codes, message }).toEqual({ codes: { OK: 2_000 }, message: '' });
      await go.close();
      const ending = face.close();
      await stage.clock.advance(10_000);
      await ending;
    }),
  );
});
