// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { CONTINUE, DONE, type ReconcileResult, requeue } from '../context/machine-reconcile.ts';
import { WorkQueue } from './work-queue.ts';

interface Started {
  readonly id: string;
  readonly end: (result: ReconcileResult) => void;
  readonly fail: (error: Error) => void;
}

/** A queue whose work ends when the test says so. Ids are `host/name`. */
function aQueue(workers = 2) {
  const clock = new VirtualClock();
  const started: Started[] = [];
  const errors: unknown[] = [];
  const queue = new WorkQueue({
    clock,
    laneOf: (id) => ({ name: id.split('/')[0] ?? '', workers }),
    work: (id) =>
      new Promise((end, fail) => {
        started.push({ id, end, fail });
      }),
    onError: (error) => errors.push(error),
  });
  const ids = () => started.map(({ id }) => id);
  const last = (id: string) => started.findLast((one) => one.id === id)!;
  const end = async (id: string, result: ReconcileResult) => {
    last(id).end(result);
    await clock.advance(0);
  };
  return { clock, queue, started, errors, ids, last, end };
}

describe('WorkQueue', () => {
  it('runs at most as many machines of a lane as it has workers, and other lanes independently', async () => {
    const { queue, ids, end } = aQueue();
    for (const id of ['a/1', 'a/2', 'a/3', 'b/1']) queue.add(id);
    queue.startDue();
    expect(ids()).toEqual(['a/1', 'a/2', 'b/1']);
    await end('a/2', DONE);
    queue.startDue();
    expect(ids()).toEqual(['a/1', 'a/2', 'b/1', 'a/3']);
  });

  it('never runs a machine twice at the same time, and runs it again if it was added while running', async () => {
    const { queue, ids, end } = aQueue();
    queue.add('a/1');
    queue.startDue();
    queue.add('a/1');
    queue.startDue();
    expect(ids()).toEqual(['a/1']);
    expect(queue.isRunning('a/1')).toBe(true);
    await end('a/1', requeue(60_000, 'waiting'));
    queue.startDue();
    expect(ids()).toEqual(['a/1', 'a/1']);
  });

  it('requeues at the time that the result says, which addIfAbsent keeps and add brings forward', async () => {
    const { clock, queue, ids, end } = aQueue();
    queue.add('a/1');
    queue.startDue();
    await end('a/1', requeue(5_000, 'a task is running'));
    expect(queue.reasonOf('a/1')).toBe('a task is running');
    expect(queue.nextDueAt()).toBe(clock.monotonic() + 5_000);
    queue.addIfAbsent('a/1');
    queue.startDue();
    expect(ids()).toHaveLength(1);
    queue.add('a/1');
    queue.startDue();
    expect(ids()).toHaveLength(2);
    await end('a/1', requeue(5_000, 'a task is running'));
    await clock.advance(5_000);
    queue.startDue();
    expect(ids()).toHaveLength(3);
  });

  it('a wall clock that is set forward or back moves no requeue', async () => {
    const { clock, queue, ids, end } = aQueue();
    queue.add('a/1');
    queue.startDue();
    await end('a/1', requeue(5_000, 'waiting'));
    clock.setWallClock(clock.now() + 86_400_000);
    queue.startDue();
    expect(ids()).toHaveLength(1);
    clock.setWallClock(clock.now() - 3 * 86_400_000);
    await clock.advance(5_000);
    queue.startDue();
    expect(ids()).toHaveLength(2);
  });

  it('starts the machine that has waited longest first', async () => {
    const { clock, queue, ids, end } = aQueue(1);
    queue.add('a/1');
    queue.startDue();
    await clock.advance(10);
    queue.add('a/3');
    await clock.advance(10);
    queue.add('a/2');
    await end('a/1', CONTINUE);
    queue.startDue();
    expect(ids()).toEqual(['a/1', 'a/3']);
  });

  it('reports an error and retries that machine later; the others continue', async () => {
    const { clock, queue, ids, errors, last } = aQueue();
    queue.add('a/1');
    queue.add('a/2');
    queue.startDue();
    last('a/1').fail(new Error('broken'));
    last('a/2').end(DONE);
    await clock.advance(0);
    expect(errors).toEqual([new Error('broken')]);
    queue.startDue();
    expect(ids()).toHaveLength(2);
    await clock.advance(1_000);
    queue.startDue();
    expect(ids()).toEqual(['a/1', 'a/2', 'a/1']);
  });

  it('runs exclusive work only while the machine is not reconciled, and reconciles it afterwards', async () => {
    const { clock, queue, ids, end } = aQueue();
    const done: string[] = [];
    let finish: () => void = () => undefined;
    const work = (name: string) => () =>
      new Promise<void>((resolve) => {
        done.push(name);
        finish = resolve;
      });
    const first = queue.runExclusive('a/1', work('first'));
    queue.startDue();
    expect(ids()).toEqual([]);
    expect(await queue.runExclusive('a/1', work('second'))).toBe(false);
    finish();
    expect(await first).toBe(true);
    queue.startDue();
    expect(ids()).toEqual(['a/1']);
    expect(await queue.runExclusive('a/1', work('third'))).toBe(false);
    await end('a/1', requeue(60_000, 'waiting'));
    await clock.advance(0);
    const fourth = queue.runExclusive('a/1', work('fourth'));
    finish();
    expect(await fourth).toBe(true);
    queue.startDue();
    expect(ids()).toEqual(['a/1', 'a/1']);
    expect(done).toEqual(['first', 'fourth']);
  });

  it('signals a change when work is added and when it ends', async () => {
    const { queue, end } = aQueue();
    expect(queue.changed.signal.aborted).toBe(false);
    queue.add('a/1');
    expect(queue.changed.signal.aborted).toBe(true);
    queue.changed.reset();
    queue.startDue();
    await end('a/1', DONE);
    expect(queue.changed.signal.aborted).toBe(true);
    await queue.idle();
  });

  it('starts machines in the order of their times, in whichever order they were requeued', async () => {
    const { clock, queue, ids, end } = aQueue(100);
    const delays = Array.from({ length: 40 }, (_, at) => 1 + ((at * 17) % 40));
    for (const delay of delays) queue.add(`a/${delay}`);
    queue.startDue();
    for (const delay of delays) await end(`a/${delay}`, requeue(delay * 1_000, 'waiting'));
    const before = ids().length;
    for (let second = 1; second <= 40; second += 1) {
      expect(queue.nextDueAt()).toBe(second * 1_000);
      await clock.advance(1_000);
      queue.startDue();
      await end(`a/${second}`, DONE);
    }
    const started = ids().slice(before);
    expect(started).toEqual(delays.toSorted((a, b) => a - b).map((delay) => `a/${delay}`));
    expect(queue.nextDueAt()).toBe(Number.POSITIVE_INFINITY);
  });

  it('runs a machine again that addIfAbsent named while it was running, only if it was done', async () => {
    const { queue, ids, end } = aQueue();
    for (const id of ['a/1', 'a/2']) queue.add(id);
    queue.startDue();
    for (const id of ['a/1', 'a/2']) queue.addIfAbsent(id);
    await end('a/1', DONE);
    await end('a/2', requeue(60_000, 'waiting'));
    queue.startDue();
    expect(ids()).toEqual(['a/1', 'a/2', 'a/1']);
    await end('a/1', DONE);
    queue.startDue();
    expect(ids()).toHaveLength(3);
    expect(queue.reasonOf('a/1')).toBeUndefined();
  });

  it('forgets the time of a machine that was added before it', async () => {
    const { clock, queue, ids, end } = aQueue();
    queue.add('a/1');
    queue.startDue();
    await end('a/1', requeue(1_000, 'waiting'));
    queue.add('a/1');
    queue.startDue();
    await end('a/1', requeue(5_000, 'waiting'));
    expect(queue.nextDueAt()).toBe(5_000);
    await clock.advance(1_000);
    queue.startDue();
    expect(ids()).toHaveLength(2);
  });

  it('settle waits until its machines were worked on, and no longer than it may', async () => {
    const { clock, queue, end, last } = aQueue();
    queue.add('a/1');
    queue.add('b/1');
    const settled: string[] = [];
    const settling = queue.settle(['a/1'], 2_000).then(() => settled.push('a/1'));
    await clock.advance(500);
    expect(settled).toEqual([]);
    await end('a/1', requeue(60_000, 'waiting'));
    await settling;
    expect(clock.monotonic()).toBe(500);
    const late = queue.settle(['b/1'], 2_000).then(() => settled.push('b/1'));
    await clock.advance(1_999);
    expect(settled).toEqual(['a/1']);
    await clock.advance(1);
    await late;
    expect(queue.isRunning('b/1')).toBe(true);
    expect(clock.sleeping).toBe(0);
    last('b/1').end(DONE);
  });

  it('drain works until nothing is due, or starts nothing more once it is stopped', async () => {
    const { clock, queue, ids, end } = aQueue();
    queue.add('a/1');
    let isStopped = false;
    const draining = queue.drain(() => isStopped);
    await end('a/1', CONTINUE);
    await clock.advance(0);
    expect(ids()).toEqual(['a/1', 'a/1']);
    isStopped = true;
    await end('a/1', CONTINUE);
    await draining;
    expect(ids()).toHaveLength(2);
  });

  it('exclusive work that fails makes its machine due all the same', async () => {
    const { queue, ids } = aQueue();
    const failing = queue.runExclusive('a/1', () => Promise.reject(new Error('the store is busy')));
    await expect(failing).rejects.toThrow('the store is busy');
    queue.startDue();
    expect(ids()).toEqual(['a/1']);
  });
});
