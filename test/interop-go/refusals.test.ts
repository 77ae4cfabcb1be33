// SPDX-License-Identifier: Apache-2.0
// Calls that fail: the code and message that the autoscaler would log.
import { describe, expect, it } from 'vitest';
import type { Machine, MachineId } from '../../src/model/machine.ts';

import { aPool, REGION } from '../interop/test-server.ts';
import { VERSIONS } from './build.ts';
import { type GoFixture, withGoClient } from './with-go-client.ts';

const MIB = 2 ** 20;
const MINUTE = 60e9;
const HUGE = aPool({ limits: { ...aPool().limits, max: 20_000 } });

/** Blocks increases in their handler until the call is cancelled; `reached` resolves when one blocks. */
function holdIncreases({ store }: GoFixture) {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  const create = store.intents.create.bind(store.intents);
  store.intents.create = async (key, value, options) => {
    resolve();
    const { promise, resolve: release } = Promise.withResolvers<void>();
    options?.signal?.addEventListener('abort', () => release());
    await promise;
    leave();
    return create(key, value, options);
  };
  return { reached, left };
}

const INCREASE = { request: { id: 'workers', delta: 1 } };

/** Writes this many machine records. */
async function writeMachines(
  { store, fleet }: GoFixture,
  count: number,
  more: Pick<Machine, 'phase' | 'failure'>,
): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const id = `00000000-0000-4000-8000-${String(index).padStart(12, '0')}` as MachineId;
    const machine: Machine = {
      id,
      pool: 'workers',
      phaseSince: 0,
      requestedAt: index,
      size: { cpu: 2, memoryBytes: 2 ** 31, diskBytes: 2 ** 34 },
      attempts: 0,
      placement: {
        region: REGION,
        host: 'pve1',
        vmId: 100_000 + index,
        name: `a-worker-with-a-rather-long-name-${index}`,
        diskStorage: 'local-lvm',
        addresses: [],
      },
      ...more,
    };
    await store.machines.create(id, machine);
  }
  await fleet.view.refresh();
}

describe.each(VERSIONS)('grpc-go %s', (_name, version) => {
  it(
    'reads the code and a message with non-ASCII text',
    withGoClient(version, {}, async ({ go }) => {
      const id = 'Gruppe "ä" 100% 🤖; x';
      const { code, message, trailer } = await go.call('NodeGroupTargetSize', { request: { id } });
      expect({ code, message }).toEqual({
        code: 'NotFound',
        message: `no node group ${JSON.stringify(id)}`,
      });
      expect(trailer).not.toHaveProperty('grpc-status');
    }),
  );

  it(
    'gets Unimplemented for an unknown RPC or service',
    withGoClient(version, {}, async ({ go }) => {
      for (const rpc of ['NoSuchThing', '/no.such.Service/Call', '/x']) {
        const { code, message } = await go.call(rpc);
        expect({ rpc, code, message }).toEqual({
          rpc,
          code: 'Unimplemented',
          message: 'unknown RPC',
        });
      }
      expect((await go.call('NodeGroups')).code).toBe('OK');
      expect(await go.stats()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'gets Unavailable while the server is not ready',
    withGoClient(version, { isReady: false }, async ({ go }) => {
      const { code, message } = await go.call('NodeGroups');
      expect(code).toBe('Unavailable');
      expect(message).toMatch(/^not ready, waiting for /);
    }),
  );

  it(
    'gets DeadlineExceeded from the server',
    withGoClient(version, {}, async (fixture) => {
      const { reached, left } = holdIncreases(fixture);
      const { outcome } = fixture.go.begin('NodeGroupIncreaseSize', {
        ...INCREASE,
        timeoutNs: 10 * MINUTE,
      });
      await reached;
      // The client's own clock has not reached the deadline.
      await fixture.clock.advance(10 * 60_000);
      expect(await outcome).toMatchObject({
        code: 'DeadlineExceeded',
        message: 'the deadline has passed',
      });
      await left;
      expect(await fixture.store.intents.list()).toEqual([]);
      expect((await fixture.go.call('NodeGroups')).code).toBe('OK');
      expect(await fixture.go.stats()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'cancels a running call, and the server stops it',
    withGoClient(version, {}, async (fixture) => {
      const { reached, left } = holdIncreases(fixture);
      const { outcome, cancel } = fixture.go.begin('NodeGroupIncreaseSize', INCREASE);
      await reached;
      await cancel();
      expect((await outcome).code).toBe('Canceled');
      await left;
      expect(await fixture.store.intents.list()).toEqual([]);
      expect((await fixture.go.call('NodeGroups')).code).toBe('OK');
      expect(await fixture.go.stats()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'gets ResourceExhausted for a message above 4 MiB and keeps its connection',
    withGoClient(version, {}, async ({ go }) => {
      const request = { id: 'x'.repeat(5 * MIB) };
      const { codes, message } = await go.call('NodeGroupTargetSize', { request, count: 5 });
      expect(codes).toEqual({ ResourceExhausted: 5 });
      expect(message).toMatch(/^the message has 52428\d\d bytes, more than 4194304$/);
      const largest = { id: 'x'.repeat(4 * MIB - 5) };
      expect((await go.call('NodeGroupTargetSize', { request: largest })).code).toBe('NotFound');
      expect((await go.call('NodeGroups', { count: 100 })).codes).toEqual({ OK: 100 });
      expect(await go.stats()).toMatchObject({ connections: 1, goAways: [] });
    }),
  );

  it(
    'reads ten thousand instances within its limit of 4 MiB',
    withGoClient(version, { pools: [HUGE] }, async (fixture) => {
      await writeMachines(fixture, 10_000, { phase: 'ready' });
      const { code, message, bytes, response } = await fixture.go.call('NodeGroupNodes', {
        request: { id: 'workers' },
      });
      expect({ code, message }).toEqual({ code: 'OK', message: '' });
      expect(response.instances).toHaveLength(10_000);
      expect(bytes).toBeLessThan(MIB);
    }),
  );

  it(
    'reads ten thousand failed creations with long messages within its limit of 4 MiB',
    withGoClient(version, { pools: [HUGE] }, async (fixture) => {
      const message = 'storage “local-lvm” is ö full: '.repeat(100);
      const failure = { code: 'TASK_FAILED', message, at: 0, phase: 'creating' } as const;
      await writeMachines(fixture, 10_000, { phase: 'failed', failure });
      const outcome = await fixture.go.call('NodeGroupNodes', { request: { id: 'workers' } });
      expect(outcome).toMatchObject({ code: 'OK', message: '' });
      expect(outcome.bytes).toBeLessThan(3.5 * MIB);
      expect(outcome.response.instances).toHaveLength(10_000);
      const { errorMessage } = outcome.response.instances[0].status.errorInfo;
      expect(errorMessage).toMatch(/^storage “local-lvm” is ö full: .*…$/);
    }),
  );

  it(
    'gets Unimplemented for a compressed message',
    withGoClient(version, {}, async ({ go }) => {
      const { codes, message } = await go.call('NodeGroups', { gzip: true, count: 5 });
      expect({ codes, message }).toEqual({
        codes: { Unimplemented: 5 },
        message: 'grpc-encoding "gzip" is not supported; use identity',
      });
      expect((await go.call('NodeGroups')).code).toBe('OK');
      expect(await go.stats()).toMatchObject({ connections: 1 });
    }),
  );
});
