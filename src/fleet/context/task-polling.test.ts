// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Tempo, type Tempoed } from './task-polling.ts';

function aTask(upid = 'first', startedAt = 0): Tempoed {
  return { of: 'm1', upid, kind: 'workers qmcreate', startedAt };
}

/** Looks every 50 ms until the end has been told; how often it was asked about, and when the end was seen. */
function follow(tempo: Tempo, task: Tempoed, tookMs: number) {
  let questions = 0;
  for (let now = task.startedAt; ; now += 50) {
    if (!tempo.isDue(task, now)) continue;
    questions += 1;
    const hasEnded = now - task.startedAt >= tookMs;
    tempo.answered(task, hasEnded ? 'ended' : 'running', now);
    if (hasEnded) return { questions, lateMs: now - task.startedAt - tookMs };
  }
}

describe('tempo', () => {
  it('asks every half second about what nobody knows', () => {
    expect(follow(new Tempo(), aTask(), 3_200)).toEqual({ questions: 7, lateMs: 300 });
  });

  it('asks when the end can be expected, and then often', () => {
    const tempo = new Tempo();
    follow(tempo, aTask('first'), 3_200);
    follow(tempo, aTask('second', 10_000), 3_200);
    const { questions, lateMs } = follow(tempo, aTask('third', 20_000), 3_200);
    expect(questions).toBeLessThanOrEqual(3);
    expect(lateMs).toBeLessThanOrEqual(160);
  });

  it('notices that tasks have become faster, and slower', () => {
    const tempo = new Tempo();
    const run = (tookMs: number, at: number) =>
      follow(tempo, aTask(`task ${at}`, at * 10_000), tookMs);
    for (let at = 0; at < 10; at += 1) run(4_000, at);
    for (let at = 10; at < 40; at += 1) run(1_000, at);
    expect(run(1_000, 40).lateMs).toBeLessThanOrEqual(100);
    for (let at = 41; at < 80; at += 1) run(4_000, at);
    expect(run(4_000, 80).questions).toBeLessThanOrEqual(4);
  });

  it('sees early that a task which usually takes long has failed at once', () => {
    const tempo = new Tempo();
    for (let at = 0; at < 10; at += 1) follow(tempo, aTask(`task ${at}`, at * 1e6), 300_000);
    const long = follow(tempo, aTask('long', 20e6), 300_000);
    expect(long.questions).toBeLessThanOrEqual(60);
    const half = follow(tempo, aTask('half', 21e6), 100_000);
    expect(half.lateMs).toBeLessThanOrEqual(20_000);
    const short = follow(tempo, aTask('short', 22e6), 2_000);
    expect(short.lateMs).toBeLessThanOrEqual(3_000);
  });

  it('asks at once when the clock was set back', () => {
    const tempo = new Tempo();
    follow(tempo, aTask('first', 100_000), 3_200);
    const task = aTask('second', 110_000);
    expect(tempo.isDue(task, 110_500)).toBe(false);
    expect(tempo.isDue(task, 50_000)).toBe(true);
    tempo.answered(task, 'running', 113_200);
    expect(tempo.isDue(task, 112_000)).toBe(true);
  });

  it('expects no further end of a task whose end was told, or that nobody knows', () => {
    const tempo = new Tempo();
    tempo.answered(aTask(), 'running', 1_000);
    expect(tempo.endsAt(aTask())).toBe(1_500);
    tempo.answered(aTask(), 'ended', 1_500);
    expect(tempo.endsAt(aTask())).toBe(Number.POSITIVE_INFINITY);
    expect(tempo.isDue(aTask(), 1_500)).toBe(true);
    tempo.answered(aTask('second', 2_000), 'unknown', 2_100);
    expect(tempo.endsAt(aTask('second', 2_000))).toBe(Number.POSITIVE_INFINITY);
  });

  it('learns from an end once, whoever asks again later', () => {
    const tempo = new Tempo();
    tempo.answered(aTask(), 'running', 900);
    tempo.answered(aTask(), 'ended', 1_000);
    for (let now = 2_000; now < 60_000; now += 1_000) tempo.answered(aTask(), 'ended', now);
    expect(tempo.endsAt({ ...aTask('other', 100_000), of: 'm2' })).toBe(100_950);
  });

  it('forgets whose task it was, not how long it takes', () => {
    const tempo = new Tempo();
    tempo.answered(aTask(), 'running', 900);
    tempo.answered(aTask(), 'ended', 1_000);
    tempo.forget('m1');
    expect(tempo.endsAt(aTask())).toBe(950);
  });
});
