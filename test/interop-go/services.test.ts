// SPDX-License-Identifier: Apache-2.0
// What every gRPC server has beside its own services.
import { describe, expect, it } from 'vitest';
import { VERSIONS } from './build.ts';
import { HEALTH, PROVIDER } from './go-client.ts';
import { targetOf, withGo } from './on-stage.ts';

const REFLECTION = 'grpc.reflection.v1.ServerReflection';
const FIRST_REFLECTION = 'grpc.reflection.v1alpha.ServerReflection';

describe.each(VERSIONS)('grpc-go %s', (_name, version) => {
  it(
    'asks how we are',
    withGo(version, {}, async ({ go }) => {
      for (const service of ['', PROVIDER, HEALTH])
        expect(await go.check(service)).toMatchObject({ code: 'OK', status: 'SERVING' });
      expect(await go.check('no.such.Service')).toMatchObject({
        code: 'NotFound',
        message: 'no such service',
      });
    }),
  );

  it(
    'watches how we are until it gives up, or its time is over',
    withGo(version, { isReady: false }, async ({ go, round, clock }) => {
      const watch = go.watch(PROVIDER);
      const timed = go.watch('', { timeoutNs: 3_600e9 });
      expect((await watch.outcome).status).toBe('NOT_SERVING');
      expect((await timed.outcome).status).toBe('NOT_SERVING');
      await round();
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
      expect(await go.seen()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'calls only while we are well, where its service configuration says so',
    withGo(version, { isReady: false }, async (stage) => {
      const serviceConfig = JSON.stringify({
        loadBalancingConfig: [{ round_robin: {} }],
        healthCheckConfig: { serviceName: PROVIDER },
      });
      const go = await stage.process.dial({ target: targetOf(stage), serviceConfig });
      await go.until({ state: 'TRANSIENT_FAILURE' });
      expect((await go.call('NodeGroups')).message).toContain('health');
      const waiting = go.begin('NodeGroups', { waitForReady: true, timeoutNs: 60e9 });
      await stage.round();
      await stage.clock.advance(1_000);
      expect((await waiting.outcome).code).toBe('OK');
      expect(await go.seen()).toMatchObject({ state: 'READY', connections: 1 });
    }),
  );

  it(
    'learns how a conversation ended that it would have gone on with',
    withGo(version, {}, async ({ go, clock }) => {
      const talk = go.converse(REFLECTION, { timeoutNs: 3_600e9 });
      expect((await talk.outcome).code).toBe('OK');
      await clock.advance(3_600_000);
      expect(await talk.next()).toMatchObject({
        code: 'DeadlineExceeded',
        message: 'the deadline has passed',
      });
      const given = go.converse(REFLECTION);
      expect((await given.outcome).code).toBe('OK');
      await given.cancel();
      expect((await given.next()).code).toBe('Canceled');
      expect(await go.seen()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'is watched for and not given up where nothing changes',
    withGo(
      version,
      { isReady: false, serve: { stillMaxMs: 200 } },
      async ({ go, round, clock }) => {
        const watch = go.watch();
        expect((await watch.outcome).status).toBe('NOT_SERVING');
        // Still for as long as the other, and later.
        const talk = go.converse(REFLECTION);
        expect((await talk.outcome).code).toBe('OK');
        expect(await talk.next()).toMatchObject({
          code: 'DeadlineExceeded',
          message: 'nothing came for 0.2 seconds',
        });
        await round();
        await clock.advance(1_000);
        expect(await watch.next()).toMatchObject({ code: 'OK', status: 'SERVING' });
      },
    ),
  );

  it.each([REFLECTION, FIRST_REFLECTION])('learns from %s everything that we speak', (service) =>
    withGo(version, {}, async ({ go }) => {
      const { services, files } = await go.reflect(service);
      expect(services).toEqual([PROVIDER, HEALTH, REFLECTION, FIRST_REFLECTION]);
      expect(files).toBeGreaterThan(4);
      expect(await go.seen()).toMatchObject({ connections: 1 });
    })(),
  );
});
