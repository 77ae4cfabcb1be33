// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { BackgroundTasks } from './background-tasks.ts';

const settled = () => Promise.resolve().then(() => Promise.resolve());

describe('an errand', () => {
  it('runs until it ends, and its end is told once', async () => {
    const errands = new BackgroundTasks();
    let finish = () => {};
    errands.begin('a', new Promise<void>((resolve) => (finish = resolve)));
    expect(errands.takeResult('a')).toBe('running');
    finish();
    await settled();
    expect(errands.takeResult('a')).toBe('done');
    expect(errands.takeResult('a')).toBe('none');
  });

  it('that fails says so once, and can be begun again', async () => {
    const errands = new BackgroundTasks();
    errands.begin('a', Promise.reject(new Error('no')));
    await settled();
    expect(() => errands.takeResult('a')).toThrow('no');
    expect(errands.takeResult('a')).toBe('none');
  });

  it('that was forgotten ends unheard', async () => {
    const errands = new BackgroundTasks();
    errands.begin('a', Promise.resolve());
    errands.forget('a');
    await settled();
    expect(errands.takeResult('a')).toBe('none');
  });
});
