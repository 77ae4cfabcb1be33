// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { BackgroundTasks } from './driver-state.ts';

const settled = () => Promise.resolve().then(() => Promise.resolve());

describe('BackgroundTasks', () => {
  it('reports a task as running until it ends, and its end once', async () => {
    const tasks = new BackgroundTasks();
    let finish = () => {};
    tasks.begin('a', new Promise<void>((resolve) => (finish = resolve)));
    expect(tasks.takeResult('a')).toBe('running');
    finish();
    await settled();
    expect(tasks.takeResult('a')).toBe('done');
    expect(tasks.takeResult('a')).toBe('none');
  });

  it('throws the error of a failed task once; the task can be started again', async () => {
    const tasks = new BackgroundTasks();
    tasks.begin('a', Promise.reject(new Error('no')));
    await settled();
    expect(() => tasks.takeResult('a')).toThrow('no');
    expect(tasks.takeResult('a')).toBe('none');
  });

  it('reports nothing about a task that was forgotten', async () => {
    const tasks = new BackgroundTasks();
    tasks.begin('a', Promise.resolve());
    tasks.forget('a');
    await settled();
    expect(tasks.takeResult('a')).toBe('none');
  });
});
