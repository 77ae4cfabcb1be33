// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Errands } from './errands.ts';

const settled = () => Promise.resolve().then(() => Promise.resolve());

describe('an errand', () => {
  it('runs until it ends, and its end is told once', async () => {
    const errands = new Errands();
    let finish = () => {};
    errands.begin('a', new Promise<void>((resolve) => (finish = resolve)));
    expect(errands.take('a')).toBe('running');
    finish();
    await settled();
    expect(errands.take('a')).toBe('done');
    expect(errands.take('a')).toBe('none');
  });

  it('that fails says so once, and can be begun again', async () => {
    const errands = new Errands();
    errands.begin('a', Promise.reject(new Error('no')));
    await settled();
    expect(() => errands.take('a')).toThrow('no');
    expect(errands.take('a')).toBe('none');
  });

  it('that was forgotten ends unheard', async () => {
    const errands = new Errands();
    errands.begin('a', Promise.resolve());
    errands.forget('a');
    await settled();
    expect(errands.take('a')).toBe('none');
  });
});
