// SPDX-License-Identifier: Apache-2.0
// The standard services: health and reflection.
import { describe, expect, it } from 'vitest';
import { VERSIONS } from './build.ts';
import { HEALTH, PROVIDER } from './go-client.ts';
import { serverAddress, withGoClient } from './with-go-client.ts';

const REFLECTION = 'grpc.reflection.v1.ServerReflection';
const REFLECTION_V1ALPHA = 'grpc.reflection.v1alpha.ServerReflection';
/** In real time. Long enough that the first message arrives in time on a loaded machine. */
const STALL_MS = 1_000;

describe.each(VERSIONS)('grpc-go %s', (_name, version) => {
  it(
    'checks the health',
    withGoClient(version, {}, async ({ go }) => {
      for (const service of ['', PROVIDER, HEALTH])
        expect(await go.check(service)).toMatchObject({ code: 'OK', status: 'SERVING' });
      expect(await go.check('no.such.Service')).toMatchObject({
        code: 'NotFound',
        message: 'unknown service',
      });
    }),
  );

  it(
    'watches the health until it cancels or its deadline passes',
    withGoClient(version, { isReady: false }, async ({ go, reconcile, clock }) => {
      const watch = go.watch(PROVIDER);
      const timed = go.watch('', { timeoutNs: 3_600e9 });
      expect((await watch.outcome).status).toBe('NOT_SERVING');
      expect((await timed.outcome).status).toBe('NOT_SERVING');
      await reconcile();
      await clock.advance(1_000);
      expect((await watch.next()).status).toBe('SERVING');
      expect((await timed.next()).status).toBe('SERVING');
      await watch.cancel();
      expect((await watch.next()).code).toBe('Canceled');
      await clock.advance(3_600_000);
      expect(await timed.next()).toMatchObject({
        code: 'DeadlineExceeded',
        message: 'the deadline has passed',
      });
      const unknown = go.watch('no.such.Service');
      expect(await unknown.outcome).toMatchObject({ code: 'OK', status: 'SERVICE_UNKNOWN' });
      await unknown.cancel();
      expect(await go.stats()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'waits for SERVING before calls when its service config enables health checks',
    withGoClient(version, { isReady: false }, async (fixture) => {
      const serviceConfig = JSON.stringify({
        loadBalancingConfig: [{ round_robin: {} }],
        healthCheckConfig: { serviceName: PROVIDER },
      });
      const go = await fixture.process.dial({ target: serverAddress(fixture), serviceConfig });
      await go.waitFor({ state: 'TRANSIENT_FAILURE' });
      expect((await go.call('NodeGroups')).message).toContain('health');
      const waiting = go.begin('NodeGroups', { waitForReady: true, timeoutNs: 60e9 });
      await fixture.reconcile();
      await fixture.clock.advance(1_000);
      expect((await waiting.outcome).code).toBe('OK');
      expect(await go.stats()).toMatchObject({ state: 'READY', connections: 1 });
    }),
  );

  it(
    'gets the status of a stream that the server ends',
    withGoClient(version, {}, async ({ go, clock }) => {
      const stream = go.openReflection(REFLECTION, { timeoutNs: 3_600e9 });
      expect((await stream.outcome).code).toBe('OK');
      await clock.advance(3_600_000);
      expect(await stream.next()).toMatchObject({
        code: 'DeadlineExceeded',
        message: 'the deadline has passed',
      });
      const cancelled = go.openReflection(REFLECTION);
      expect((await cancelled.outcome).code).toBe('OK');
      await cancelled.cancel();
      expect((await cancelled.next()).code).toBe('Canceled');
      expect(await go.stats()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'keeps a health watch without changes open beyond the stall timeout',
    withGoClient(
      version,
      { isReady: false, serve: { stallTimeoutMs: STALL_MS } },
      async ({ go, reconcile, clock }) => {
        const watch = go.watch();
        expect((await watch.outcome).status).toBe('NOT_SERVING');
        // This stream starts later than the watch and fails after the timeout.
        const stream = go.openReflection(REFLECTION);
        expect((await stream.outcome).code).toBe('OK');
        expect(await stream.next()).toMatchObject({
          code: 'DeadlineExceeded',
          message: 'no data received for 1 seconds',
        });
        await reconcile();
        await clock.advance(1_000);
        expect(await watch.next()).toMatchObject({ code: 'OK', status: 'SERVING' });
      },
    ),
  );

  it.each([REFLECTION, REFLECTION_V1ALPHA])('reads all services and files from %s', (service) =>
    withGoClient(version, {}, async ({ go }) => {
      const { services, files } = await go.reflect(service);
      expect(services).toEqual([PROVIDER, HEALTH, REFLECTION, REFLECTION_V1ALPHA]);
      expect(files).toBeGreaterThan(4);
      expect(await go.stats()).toMatchObject({ connections: 1 });
    })(),
  );
});
