// SPDX-License-Identifier: Apache-2.0
// The life of a connection: pings, idle time, GOAWAY and reconnecting.
import { describe, expect, it } from 'vitest';
import { CurrentSettings, serveExternalGrpc } from '../../src/externalgrpc/index.ts';
import { aGroup, aPool } from '../interop/test-server.ts';
import { VERSIONS } from './build.ts';
import { type GoFixture, serverAddress, withGoClient } from './with-go-client.ts';

/** A new server on the port of the closed one. */
function serveAgain({ fleet, clock, server }: GoFixture) {
  return serveExternalGrpc({
    fleet,
    clock,
    settings: new CurrentSettings(
      {
        pools: [aGroup(aPool())],
        pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 },
        gpu: { label: 'autoscaler.proxmox/gpu', types: [] },
      },
      clock,
    ),
    listen: { host: '127.0.0.1', port: server.port },
    tls: undefined,
    insecure: true,
    expander: undefined,
    read: () => Promise.reject(new Error('no files here')),
    warn: () => undefined,
  });
}

/** GOAWAY is sent once, or twice before the connection closes; always without an error. */
function expectGracefulGoAway(goAways: readonly number[]): void {
  expect(new Set(goAways)).toEqual(new Set([0]));
}

describe.each(VERSIONS)('grpc-go %s', (_name, version) => {
  it(
    'may send keepalive pings at any rate, with and without calls',
    withGoClient(version, {}, async (fixture) => {
      const go = await fixture.process.dial({ target: serverAddress(fixture), keepaliveMs: 10 });
      expect((await go.call('NodeGroups')).code).toBe('OK');
      await go.waitFor({ pings: 200 });
      const watch = go.watch();
      expect((await watch.outcome).status).toBe('SERVING');
      await go.waitFor({ pings: 400 });
      await watch.cancel();
      expect((await go.call('NodeGroups')).code).toBe('OK');
      expect(await go.stats()).toMatchObject({ connections: 1, open: 1, goAways: [] });
    }),
  );

  it(
    'keeps its connection through half an hour without calls',
    withGoClient(version, {}, async ({ go, clock }) => {
      expect((await go.call('NodeGroups')).code).toBe('OK');
      await clock.advance(30 * 60_000);
      expect((await go.call('NodeGroups')).code).toBe('OK');
      expect(await go.stats()).toMatchObject({ connections: 1, open: 1, goAways: [] });
    }),
  );

  it(
    'reconnects after its idle connection was closed',
    withGoClient(version, {}, async ({ go, clock }) => {
      expect((await go.call('NodeGroups')).code).toBe('OK');
      await clock.advance(61 * 60_000);
      expect((await go.call('NodeGroups')).code).toBe('OK');
      const { connections, goAways } = await go.stats();
      expect(connections).toBe(2);
      expectGracefulGoAway(goAways);
    }),
  );

  it(
    'waits for a server that is down and calls it after its restart',
    withGoClient(version, {}, async (fixture) => {
      const { go, server, clock } = fixture;
      expect((await go.call('NodeGroups')).code).toBe('OK');
      const closing = server.close();
      await go.waitFor({ state: 'TRANSIENT_FAILURE' });
      await closing;
      expect((await go.call('NodeGroups')).code).toBe('Unavailable');
      const waiting = go.begin('NodeGroups', { waitForReady: true, timeoutNs: 60e9 });
      const again = await serveAgain(fixture);
      try {
        expect((await waiting.outcome).code).toBe('OK');
        expectGracefulGoAway((await go.stats()).goAways);
      } finally {
        await go.close();
        const ending = again.close();
        await clock.advance(10_000);
        await ending;
      }
    }),
  );

  it(
    'loses no call while the server restarts on the same port',
    withGoClient(version, {}, async (fixture) => {
      const { go } = fixture;
      await go.call('NodeGroups');
      const options = { waitForReady: true, timeoutNs: 60e9 };
      const calls = go.begin('NodeGroups', { ...options, count: 40, parallel: 50 });
      let { server } = fixture;
      for (let restart = 0; restart < 3; restart += 1) {
        const ended = server.close();
        server = await ended.then(() => serveAgain(fixture));
        expect((await go.call('NodeGroups', { ...options, count: 20 })).codes).toEqual({ OK: 20 });
      }
      const { codes, message } = await calls.outcome;
      expect({ codes, message }).toEqual({ codes: { OK: 2_000 }, message: '' });
      await go.close();
      const ending = server.close();
      await fixture.clock.advance(10_000);
      await ending;
    }),
  );
});
