// SPDX-License-Identifier: Apache-2.0
// Calls that fail: the code and the words that the autoscaler would log.
import { describe, expect, it } from 'vitest';
import type { Machine } from '../../src/model/machine.ts';
import type { MachineId } from '../../src/model/machine-id.ts';
import { aPool, REGION } from '../interop/stage.ts';
import { VERSIONS } from './build.ts';
import { type GoStage, withGo } from './on-stage.ts';

const MIB = 2 ** 20;
const MINUTE = 60e9;
const HUGE = aPool({ limits: { ...aPool().limits, max: 20_000 } });

/** Lets a call wait in its handler until the call is given up; resolves when one waits. */
function holdIncreases({ store }: GoStage) {
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

/** So many machines in the records. */
async function write(
  { store, fleet }: GoStage,
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
    'reads code and words in any letters',
    withGo(version, {}, async ({ go }) => {
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
    'learns that an RPC or a service does not exist',
    withGo(version, {}, async ({ go }) => {
      for (const rpc of ['NoSuchThing', '/no.such.Service/Call', '/x']) {
        const { code, message } = await go.call(rpc);
        expect({ rpc, code, message }).toEqual({
          rpc,
          code: 'Unimplemented',
          message: 'no such RPC',
        });
      }
      expect((await go.call('NodeGroups')).code).toBe('OK');
      expect(await go.seen()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'learns that we are not ready',
    withGo(version, { isReady: false }, async ({ go }) => {
      const { code, message } = await go.call('NodeGroups');
      expect(code).toBe('Unavailable');
      expect(message).toMatch(/^not ready, waiting for /);
    }),
  );

  it(
    'learns from the server that its deadline has passed',
    withGo(version, {}, async (stage) => {
      const { reached, left } = holdIncreases(stage);
      const { outcome } = stage.go.begin('NodeGroupIncreaseSize', {
        ...INCREASE,
        timeoutNs: 10 * MINUTE,
      });
      await reached;
      // The client's own clock is far from it.
      await stage.clock.advance(10 * 60_000);
      expect(await outcome).toMatchObject({
        code: 'DeadlineExceeded',
        message: 'the deadline has passed',
      });
      await left;
      expect(await stage.store.intents.list()).toEqual([]);
      expect((await stage.go.call('NodeGroups')).code).toBe('OK');
      expect(await stage.go.seen()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'gives a call up in the middle, and the server stops',
    withGo(version, {}, async (stage) => {
      const { reached, left } = holdIncreases(stage);
      const { outcome, cancel } = stage.go.begin('NodeGroupIncreaseSize', INCREASE);
      await reached;
      await cancel();
      expect((await outcome).code).toBe('Canceled');
      await left;
      expect(await stage.store.intents.list()).toEqual([]);
      expect((await stage.go.call('NodeGroups')).code).toBe('OK');
      expect(await stage.go.seen()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'may not send more than 4 MiB, and the connection stays',
    withGo(version, {}, async ({ go }) => {
      const request = { id: 'x'.repeat(5 * MIB) };
      const { codes, message } = await go.call('NodeGroupTargetSize', { request, count: 5 });
      expect(codes).toEqual({ ResourceExhausted: 5 });
      expect(message).toMatch(/^the message has 52428\d\d bytes, more than 4194304$/);
      const largest = { id: 'x'.repeat(4 * MIB - 5) };
      expect((await go.call('NodeGroupTargetSize', { request: largest })).code).toBe('NotFound');
      expect((await go.call('NodeGroups', { count: 100 })).codes).toEqual({ OK: 100 });
      expect(await go.seen()).toMatchObject({ connections: 1, goAways: [] });
    }),
  );

  it(
    'can read ten thousand instances, and is far from the 4 MiB that it takes',
    withGo(version, { pools: [HUGE] }, async (stage) => {
      await write(stage, 10_000, { phase: 'ready' });
      const { code, message, bytes, answer } = await stage.go.call('NodeGroupNodes', {
        request: { id: 'workers' },
      });
      expect({ code, message }).toEqual({ code: 'OK', message: '' });
      expect(answer.instances).toHaveLength(10_000);
      expect(bytes).toBeLessThan(MIB);
    }),
  );

  it(
    'can read that ten thousand creations failed, however long the reason is',
    withGo(version, { pools: [HUGE] }, async (stage) => {
      const message = 'storage “local-lvm” is ö full: '.repeat(100);
      const failure = { code: 'TASK_FAILED', message, at: 0, phase: 'creating' } as const;
      await write(stage, 10_000, { phase: 'failed', failure });
      const outcome = await stage.go.call('NodeGroupNodes', { request: { id: 'workers' } });
      expect(outcome).toMatchObject({ code: 'OK', message: '' });
      expect(outcome.bytes).toBeLessThan(3.5 * MIB);
      expect(outcome.answer.instances).toHaveLength(10_000);
      const { errorMessage } = outcome.answer.instances[0].status.errorInfo;
      expect(errorMessage).toMatch(/^storage “local-lvm” is ö full: .*…$/);
    }),
  );

  it(
    'learns that nothing compressed is read',
    withGo(version, {}, async ({ go }) => {
      const { codes, message } = await go.call('NodeGroups', { gzip: true, count: 5 });
      expect({ codes, message }).toEqual({
        codes: { Unimplemented: 5 },
        message: 'requests in grpc-encoding "gzip" are not read',
      });
      expect((await go.call('NodeGroups')).code).toBe('OK');
      expect(await go.seen()).toMatchObject({ connections: 1 });
    }),
  );
});
