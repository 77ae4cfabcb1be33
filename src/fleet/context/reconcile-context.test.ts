// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { aMachine, aMachineId } from '../../ports/fakes/sample-records.ts';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { REGION, someSettings } from '../testing/settings.ts';
import { DriverState } from './driver-state.ts';
import { ReconcileContext, subjectOf } from './reconcile-context.ts';

function aContext(authority: { signal?: AbortSignal; mayAct?: () => boolean } = {}) {
  const clock = new VirtualClock();
  const { journal } = new MemoryStore({ clock });
  const lease = { name: 'reconcile', holder: 'one' };
  const context = new ReconcileContext({
    clock,
    journal,
    settings: someSettings(),
    state: new DriverState(),
    views: new Map(),
    hypervisors: new Map([[REGION, 'a connection']]),
    clusterReading: { kind: 'none' },
    authority: { lease, mayAct: () => true, ...authority },
  } as never);
  return { context, clock, journal };
}

describe('writeOptions', () => {
  it('has the signal of the lease while it is held', () => {
    const { signal } = new AbortController();
    expect(aContext({ signal }).context.writeOptions()).toEqual({ signal });
    expect(aContext().context.writeOptions()).toEqual({ signal: undefined });
    expect(aContext({ signal }).context.readOptions).toEqual({ signal });
  });

  it.each([
    ['its signal is aborted', { signal: AbortSignal.abort() }],
    ['the lease has expired', { mayAct: () => false }],
  ])('throws once %s', (_what, authority) => {
    const { context } = aContext(authority);
    expect(() => context.writeOptions()).toThrow('one no longer holds reconcile');
  });

  it('checks the lease at every call', () => {
    let isHeld = true;
    const { context } = aContext({ mayAct: () => isHeld });
    context.writeOptions();
    isHeld = false;
    expect(() => context.writeOptions()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }));
  });
});

describe('ReconcileContext', () => {
  it('knows the configured regions and their connections', () => {
    const { context } = aContext();
    expect(context.isConfigured(REGION)).toBe(true);
    expect(context.isConfigured('other')).toBe(false);
    expect(context.hypervisor(REGION)).toBe('a connection');
    expect(context.region(REGION).name).toBe(REGION);
    expect(() => context.hypervisor('other')).toThrow('no connection to region other');
    expect(() => context.region('other')).toThrow('no region other');
    expect(context.vmInView({ region: REGION, vmId: 1 })).toBeUndefined();
  });

  it('records a note once until another one about the same subject follows', async () => {
    const { context, journal } = aContext();
    const note = (message: string) => ({ kind: 'saw', subject: {}, reason: 'R', message }) as const;
    await context.recordOnce('a', note('first'));
    await context.recordOnce('a', note('first'));
    await context.recordOnce('b', note('first'));
    await context.recordOnce('a', note('second'));
    await context.recordOnce('a', note('first'));
    const entries = await journal.read();
    expect(entries.map(({ message }) => message)).toEqual(['first', 'first', 'second', 'first']);
    expect(entries[0]).not.toHaveProperty('numbers');
  });

  it('lets other work run after it has blocked the event loop for long', async () => {
    const { context, clock } = aContext();
    await context.yieldToEventLoop();
    await clock.advance(1_000);
    const yielding = context.yieldToEventLoop();
    expect(clock.sleeping).toBe(1);
    await clock.advance(1);
    await yielding;
    await context.yieldToEventLoop();
    expect(clock.sleeping).toBe(0);
  });
});

describe('subjectOf', () => {
  it('has the pool and the machine, and what else is known', () => {
    const id = aMachineId(4);
    expect(subjectOf(aMachine({ id }))).toEqual({ pool: 'workers', machine: id });
    const placement = {
      region: 'r',
      host: 'h',
      vmId: 1,
      name: 'n',
      diskStorage: '',
      addresses: [],
    };
    expect(subjectOf(aMachine({ id, placement, nodeName: 'n' }))).toEqual({
      pool: 'workers',
      machine: id,
      node: 'n',
      host: 'h',
      region: 'r',
    });
  });
});
